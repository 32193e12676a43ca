"""From topics to rows: which offsets a batch has (`topics` asks, `planning` decides, on the driver), and `task`, which
fetches one range and decodes it to Arrow columns, on an executor."""
