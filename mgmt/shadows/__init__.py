"""Shadow runs: a draft is executed over real events, sends nothing, and is compared with what the pipe has sent."""
