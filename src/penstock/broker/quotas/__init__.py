"""What clients may take of this broker: bytes, time, changes of topics (`client_quotas`), connections (`connection_quotas`).

Who takes more is slowed down and never refused: nothing more is read from the connection for a while, and the answer says how
long (`throttle_time_ms`). The arithmetic is in `security/quotas`. Where no quota is set, a request costs one look at `is_active`.
"""
