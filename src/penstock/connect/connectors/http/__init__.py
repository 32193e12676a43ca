"""Records to an HTTP endpoint, with the configurations of Aiven's connector, and the answers of one to a topic."""
