"""Control laws, one file each. A law is pure: `update(state, observation, dt_s)` -> next state."""
