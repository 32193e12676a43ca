"""Records to Redis and from it, with the configurations of Redis' own connectors (com.redis.kafka.connect)."""
