//! Redis: a command as an array of bulk strings, as clients send it (RESP, <https://redis.io/docs/latest/develop/reference/protocol-spec/>).

use crate::text::{known, line, number};

/// Commands of Redis 7 and Valkey 8 that clients send, containers first. No other word is taken for a command: an array
/// may also be a server's answer, whose first string may be anybody's value.
const COMMANDS: &[&str] = &[
    "ACL",
    "CLIENT",
    "CLUSTER",
    "COMMAND",
    "CONFIG",
    "DEBUG",
    "FUNCTION",
    "LATENCY",
    "MEMORY",
    "MODULE",
    "OBJECT",
    "PUBSUB",
    "SCRIPT",
    "SLOWLOG",
    "XGROUP",
    "XINFO",
    "APPEND",
    "ASKING",
    "AUTH",
    "BGREWRITEAOF",
    "BGSAVE",
    "BITCOUNT",
    "BITFIELD",
    "BITFIELD_RO",
    "BITOP",
    "BITPOS",
    "BLMOVE",
    "BLMPOP",
    "BLPOP",
    "BRPOP",
    "BRPOPLPUSH",
    "BZMPOP",
    "BZPOPMAX",
    "BZPOPMIN",
    "COPY",
    "DBSIZE",
    "DECR",
    "DECRBY",
    "DEL",
    "DISCARD",
    "DUMP",
    "ECHO",
    "EVAL",
    "EVALSHA",
    "EVALSHA_RO",
    "EVAL_RO",
    "EXEC",
    "EXISTS",
    "EXPIRE",
    "EXPIREAT",
    "EXPIRETIME",
    "FAILOVER",
    "FCALL",
    "FCALL_RO",
    "FLUSHALL",
    "FLUSHDB",
    "GEOADD",
    "GEODIST",
    "GEOHASH",
    "GEOPOS",
    "GEORADIUS",
    "GEOSEARCH",
    "GEOSEARCHSTORE",
    "GET",
    "GETBIT",
    "GETDEL",
    "GETEX",
    "GETRANGE",
    "GETSET",
    "HDEL",
    "HELLO",
    "HEXISTS",
    "HEXPIRE",
    "HGET",
    "HGETALL",
    "HINCRBY",
    "HINCRBYFLOAT",
    "HKEYS",
    "HLEN",
    "HMGET",
    "HMSET",
    "HRANDFIELD",
    "HSCAN",
    "HSET",
    "HSETNX",
    "HSTRLEN",
    "HTTL",
    "HVALS",
    "INCR",
    "INCRBY",
    "INCRBYFLOAT",
    "INFO",
    "KEYS",
    "LASTSAVE",
    "LCS",
    "LINDEX",
    "LINSERT",
    "LLEN",
    "LMOVE",
    "LMPOP",
    "LOLWUT",
    "LPOP",
    "LPOS",
    "LPUSH",
    "LPUSHX",
    "LRANGE",
    "LREM",
    "LSET",
    "LTRIM",
    "MGET",
    "MIGRATE",
    "MONITOR",
    "MOVE",
    "MSET",
    "MSETNX",
    "MULTI",
    "PERSIST",
    "PEXPIRE",
    "PEXPIREAT",
    "PEXPIRETIME",
    "PFADD",
    "PFCOUNT",
    "PFMERGE",
    "PING",
    "PSETEX",
    "PSUBSCRIBE",
    "PSYNC",
    "PTTL",
    "PUBLISH",
    "PUNSUBSCRIBE",
    "QUIT",
    "RANDOMKEY",
    "READONLY",
    "READWRITE",
    "RENAME",
    "RENAMENX",
    "REPLCONF",
    "REPLICAOF",
    "RESET",
    "RESTORE",
    "ROLE",
    "RPOP",
    "RPOPLPUSH",
    "RPUSH",
    "RPUSHX",
    "SADD",
    "SAVE",
    "SCAN",
    "SCARD",
    "SDIFF",
    "SDIFFSTORE",
    "SELECT",
    "SET",
    "SETBIT",
    "SETEX",
    "SETNX",
    "SETRANGE",
    "SHUTDOWN",
    "SINTER",
    "SINTERCARD",
    "SINTERSTORE",
    "SISMEMBER",
    "SLAVEOF",
    "SMEMBERS",
    "SMISMEMBER",
    "SMOVE",
    "SORT",
    "SORT_RO",
    "SPOP",
    "SPUBLISH",
    "SRANDMEMBER",
    "SREM",
    "SSCAN",
    "SSUBSCRIBE",
    "STRLEN",
    "SUBSCRIBE",
    "SUBSTR",
    "SUNION",
    "SUNIONSTORE",
    "SUNSUBSCRIBE",
    "SWAPDB",
    "SYNC",
    "TIME",
    "TOUCH",
    "TTL",
    "TYPE",
    "UNLINK",
    "UNSUBSCRIBE",
    "UNWATCH",
    "WAIT",
    "WAITAOF",
    "WATCH",
    "XACK",
    "XADD",
    "XAUTOCLAIM",
    "XCLAIM",
    "XDEL",
    "XLEN",
    "XPENDING",
    "XRANGE",
    "XREAD",
    "XREADGROUP",
    "XREVRANGE",
    "XSETID",
    "XTRIM",
    "ZADD",
    "ZCARD",
    "ZCOUNT",
    "ZDIFF",
    "ZDIFFSTORE",
    "ZINCRBY",
    "ZINTER",
    "ZINTERCARD",
    "ZINTERSTORE",
    "ZLEXCOUNT",
    "ZMPOP",
    "ZMSCORE",
    "ZPOPMAX",
    "ZPOPMIN",
    "ZRANDMEMBER",
    "ZRANGE",
    "ZRANGEBYLEX",
    "ZRANGEBYSCORE",
    "ZRANGESTORE",
    "ZRANK",
    "ZREM",
    "ZREMRANGEBYLEX",
    "ZREMRANGEBYRANK",
    "ZREMRANGEBYSCORE",
    "ZREVRANGE",
    "ZREVRANGEBYLEX",
    "ZREVRANGEBYSCORE",
    "ZREVRANK",
    "ZSCAN",
    "ZSCORE",
    "ZUNION",
    "ZUNIONSTORE",
];
/// Number of the entries at the front of [`COMMANDS`] whose second string is a part of the command: `CONFIG GET`.
const CONTAINERS: usize = 16;
/// Second strings of such commands.
const SUBCOMMANDS: &[&str] = &[
    "CAT",
    "DELETE",
    "DOCS",
    "COUNT",
    "CREATE",
    "CREATECONSUMER",
    "CONSUMERS",
    "DESTROY",
    "ENCODING",
    "EXISTS",
    "FLUSH",
    "FREQ",
    "GET",
    "GETKEYS",
    "GETNAME",
    "GETUSER",
    "GROUPS",
    "HELP",
    "HISTORY",
    "ID",
    "IDLETIME",
    "INFO",
    "KILL",
    "LATEST",
    "LEN",
    "LIST",
    "LOAD",
    "NODES",
    "NUMPAT",
    "NUMSUB",
    "CHANNELS",
    "PAUSE",
    "REFCOUNT",
    "RESET",
    "RESETSTAT",
    "REWRITE",
    "SET",
    "SETINFO",
    "SETNAME",
    "SETUSER",
    "SHARDS",
    "SLEEP",
    "SLOTS",
    "STATS",
    "STREAM",
    "TRACKING",
    "UNPAUSE",
    "USAGE",
    "WHOAMI",
];

/// Returns the command, if bytes begin with one. Several commands in one piece are a pipeline.
pub(crate) fn request(head: &[u8]) -> Option<String> {
    if line(head).is_some_and(|(line, _)| line.eq_ignore_ascii_case(b"PING")) {
        return Some("PING".into());
    }
    let (first, mut rest) = command(head)?;
    let mut kind = first.clone();
    // The bytes that were looked at may end within a later command.
    while let Some((next, behind)) = rest.and_then(command) {
        if next != first {
            return Some("several commands (pipelined)".into());
        }
        kind = format!("{first} (pipelined)");
        rest = behind;
    }
    Some(kind)
}

/// Returns the command at the beginning of bytes, and the bytes behind it if it ends there.
fn command(bytes: &[u8]) -> Option<(String, Option<&[u8]>)> {
    let (count, mut rest) = line(bytes.strip_prefix(b"*")?)?;
    let count = number(count).filter(|count| *count > 0)?;
    let (word, behind) = bulk(rest)?;
    let at = COMMANDS.iter().position(|name| name.as_bytes().eq_ignore_ascii_case(word))?;
    let mut kind = COMMANDS.get(at)?.to_string();
    rest = behind;
    for nth in 1..count {
        let Some((word, behind)) = bulk(rest) else { return Some((kind, None)) };
        if nth == 1
            && at < CONTAINERS
            && let Some(sub) = known(word, SUBCOMMANDS)
        {
            kind = format!("{kind} {sub}");
        }
        rest = behind;
    }
    Some((kind, Some(rest)))
}

/// Returns a bulk string and the bytes behind it.
fn bulk(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = line(bytes.strip_prefix(b"$")?)?;
    let len = number(len)?;
    let text = rest.get(..len)?;
    Some((text, rest.get(len..)?.strip_prefix(b"\r\n")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> Option<String> {
        request(text.as_bytes())
    }

    #[test]
    fn commands_are_told_without_their_keys() {
        assert!(COMMANDS[CONTAINERS - 1] == "XINFO" && COMMANDS[CONTAINERS] == "APPEND");
        assert_eq!(kind("*2\r\n$3\r\nGET\r\n$6\r\nsecret\r\n"), Some("GET".into()));
        assert_eq!(kind("*3\r\n$3\r\nset\r\n$6\r\nsecret\r\n$9999\r\nxxx"), Some("SET".into()));
        assert_eq!(kind("*2\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n"), Some("CONFIG GET".into()));
        assert_eq!(kind("*2\r\n$6\r\nCONFIG\r\n$3\r\nabc\r\n"), Some("CONFIG".into()));
        assert_eq!(kind("PING\r\n"), Some("PING".into()));
    }

    #[test]
    fn pipelines_are_told_as_such() {
        let get = "*2\r\n$3\r\nGET\r\n$1\r\na\r\n";
        assert_eq!(kind(&get.repeat(3)), Some("GET (pipelined)".into()));
        assert_eq!(kind(&format!("{get}*1\r\n$4\r\nINFO\r\n")), Some("several commands (pipelined)".into()));
        assert_eq!(kind(&format!("{get}*1\r\n$4\r\nIN")), Some("GET".into()));
    }

    #[test]
    fn answers_are_no_commands() {
        for text in
            ["*2\r\n$5\r\nalice\r\n$3\r\nbob\r\n", "+OK\r\n", "$3\r\nGET\r\n", "*0\r\n", "*-1\r\n", "*1\r\n:5\r\n"]
        {
            assert_eq!(kind(text), None, "{text}");
        }
    }
}
