"""Services of replays."""
