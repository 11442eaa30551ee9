package redisstore

import (
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// What servers of all versions say of what they deny, and what is to be granted.
func TestLacking(t *testing.T) {
	at := func(source, call string) string { // how 7 tells the line of a call
		for i, line := range strings.Split(source, "\n") {
			if strings.Contains(line, call) {
				return " script: " + redis.NewScript(source).Hash() + ", on @user_script:" + strconv.Itoa(i+1) + "."
			}
		}
		require.Fail(t, "no such call", call)
		return ""
	}
	const inScript = "ERR The user executing the script can't run this command or subcommand"
	for text, want := range map[string]string{
		"NOPERM User throttle has no permissions to run the 'cluster|slots' command":                      "+cluster|slots",
		"NOPERM this user has no permissions to run the 'cluster' command or its subcommand":              "+cluster|slots",
		"NOPERM this user has no permissions to run the 'select' command or its subcommand":               "+select",
		"NOPERM User throttle has no permissions to run the 'hgetall' command":                            "+hgetall",
		"redis: x: NOPERM User throttle has no permissions to run the 'EVALSHA' command":                  "+evalsha",
		"ERR ACL failure in script: User throttle has no permissions to run the 'hset' command script: 1": "+hset",
		"NOPERM this user has no permissions to access one of the keys used as arguments":                 "the keys ~{pre:*}:*",
		"ERR The user executing the script can't access at least one of the keys mentioned":               "the keys ~{pre:*}:*",
		"NOPERM No permissions to access a channel":                                                       "the channels &{pre:*}:push*",
		"NOPERM this user has no permissions to access one of the channels used as arguments":             "the channels &{pre:*}:push*",
		"NOPERM whatever comes":                                                                           "all that docs/stores.md lists",
		inScript + at(sources[syncScript.Hash()], "'HGETALL'"):                                            "+hgetall",
		inScript + at(sources[saveScript.Hash()], "'HSET'"):                                               "+hset",
		inScript + at(sources[reserveScript.Hash()], "'TIME'"):                                            "+time",
		"ERR Error running script (call to f_" + syncScript.Hash() + "): @user_script:8: " + inScript[4:]: "+time",
		inScript:                       "+hmget",
		"NUMATHROTTLE_GET " + inScript: "+get",
		"ERR unknown":                  "",
		"WRONGPASS invalid username":   "",
		"":                             "",
	} {
		require.Equal(t, want, lacking("sync", text, "pre"), text)
	}
	require.Equal(t, "+hget", lacking("reservation", inScript, "pre"))
	for _, source := range sources { // else a line would not tell which
		for line := range strings.Lines(source) {
			require.LessOrEqual(t, strings.Count(line, "redis.call(")+strings.Count(line, "redis.pcall("), 1, line)
		}
	}
}
