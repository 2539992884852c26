"""What refuses requests at the server's door: the baselines the controller is compared with."""
