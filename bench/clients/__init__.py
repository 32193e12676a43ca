"""Clients in processes of their own: JSON options in the first argument, a JSON result on the last line."""
