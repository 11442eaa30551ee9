-- What a sync begins with, before anything that costs: a request that a busy server comes to when its caller has given
-- up, or soon will, is not carried out. See serverClock.
-- ARGV[20]: the server's time from which on that is so, in microseconds; 0 if the caller does not know the server's time.
-- Reply: that it has expired, and the server's time.

if ARGV[20] ~= '0' and server_time() > tonumber(ARGV[20]) then return { 'expired', string.format('%.0f', server_time()) } end

