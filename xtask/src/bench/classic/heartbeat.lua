-- The classic heartbeat: the session lives on, and the visitor hears the position.
-- KEYS  queue, session     ARGV  visitor, now in ms, session's life in s
-- Returns the position, 0 = next, or false when the visitor does not wait
redis.call('HSET', KEYS[2], 'last_seen', ARGV[2])
redis.call('EXPIRE', KEYS[2], ARGV[3])
return redis.call('ZRANK', KEYS[1], ARGV[1])
