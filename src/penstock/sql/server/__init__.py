"""ksqlDB's REST API over the engine, as a service in the frame of `penstock.web`."""
