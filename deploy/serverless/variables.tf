variable "name" {
  description = "Begins the names of all resources."
  type        = string
  default     = "bellman"
}

variable "package" {
  description = "The Lambda's zip, as package.sh makes it."
  type        = string
  default     = "law.zip"
}

variable "control" {
  description = "The law, as in the environment variable BELLMAN_CONTROL of any server."
  type        = string
  default     = "{\"controller\": {\"_target_\": \"bellman.controllers.bellman.QueueLaw\", \"q_low\": 160, \"q_high\": 480, \"max_step\": 0.1}}"
}

variable "endpoints" {
  description = "Endpoints that have an alarm."
  type        = list(string)
  default     = []
}

variable "alarm_above" {
  description = "The alarm's mean level."
  type        = number
  default     = 0.8
}

variable "alarm_actions" {
  description = "ARNs that the alarm tells, an SNS topic's for one."
  type        = list(string)
  default     = []
}
