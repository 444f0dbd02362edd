// As much of StackExchange.Redis 2 as docs/start/csharp.md and README.md use, with its names and types. The library itself
// is not in Debian. Each method sends the command that the library sends for it.
using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Net.Sockets;
using System.Text;

namespace StackExchange.Redis
{
    public enum Order { Ascending, Descending }

    public struct RedisKey
    {
        internal string Text;
        public static implicit operator RedisKey(string text) { return new RedisKey { Text = text }; }
        public override string ToString() { return Text; }
    }

    public struct RedisValue
    {
        internal string Text;
        public static implicit operator RedisValue(string text) { return new RedisValue { Text = text }; }
        public override string ToString() { return Text; }
    }

    public struct SortedSetEntry
    {
        public SortedSetEntry(RedisValue element, double score) { Element = element; Score = score; }
        public RedisValue Element { get; private set; }
        public double Score { get; private set; }
    }

    public class RedisServerException : Exception
    {
        public RedisServerException(string message) : base(message) { }
    }

    public class RedisResult
    {
        internal object Reply;
        public static explicit operator long(RedisResult result) { return Convert.ToInt64(result.Reply); }
        public static explicit operator string(RedisResult result) { return Convert.ToString(result.Reply); }
        public static explicit operator RedisResult[](RedisResult result) { return (RedisResult[])result.Reply; }
    }

    public interface IDatabase
    {
        RedisResult Execute(string command, params object[] args);
        long KeyDelete(RedisKey[] keys);
        bool KeyDelete(RedisKey key);
        long SortedSetAdd(RedisKey key, SortedSetEntry[] values);
        bool SortedSetAdd(RedisKey key, RedisValue member, double score);
        double SortedSetIncrement(RedisKey key, RedisValue member, double value);
        RedisValue[] SortedSetRangeByRank(RedisKey key, long start = 0, long stop = -1, Order order = Order.Ascending);
        SortedSetEntry[] SortedSetRangeByRankWithScores(RedisKey key, long start = 0, long stop = -1,
                                                        Order order = Order.Ascending);
        long? SortedSetRank(RedisKey key, RedisValue member, Order order = Order.Ascending);
        double? SortedSetScore(RedisKey key, RedisValue member);
    }

    public sealed class ConnectionMultiplexer
    {
        private readonly Stream stream;

        private ConnectionMultiplexer(string host, int port) { stream = new TcpClient(host, port).GetStream(); }

        public static ConnectionMultiplexer Connect(string configuration)
        {
            var words = configuration.Split(':');
            return new ConnectionMultiplexer(words[0], int.Parse(words[1]));
        }

        public IDatabase GetDatabase() { return new Database(this); }

        internal RedisResult Ask(params object[] words)
        {
            var request = new MemoryStream();
            Put(request, "*" + words.Length + "\r\n");
            foreach (var word in words)
            {
                var text = Convert.ToString(word, CultureInfo.InvariantCulture);
                Put(request, "$" + Encoding.UTF8.GetByteCount(text) + "\r\n" + text + "\r\n");
            }
            stream.Write(request.GetBuffer(), 0, (int)request.Length);
            return Take();
        }

        private static void Put(Stream to, string text)
        {
            var bytes = Encoding.UTF8.GetBytes(text);
            to.Write(bytes, 0, bytes.Length);
        }

        private RedisResult Take()
        {
            var line = Line();
            var rest = line.Substring(1);
            switch (line[0])
            {
            case '-':
                throw new RedisServerException(rest);
            case ':':
                return new RedisResult { Reply = long.Parse(rest) };
            case '$':
                return new RedisResult { Reply = rest == "-1" ? null : Text(int.Parse(rest)) };
            case '*':
                return new RedisResult {
                    Reply = rest == "-1" ? null : Enumerable.Range(0, int.Parse(rest)).Select(_ => Take()).ToArray() };
            default:
                return new RedisResult { Reply = rest };
            }
        }

        private string Line()
        {
            var bytes = new List<byte>();
            while (bytes.Count < 2 || bytes[bytes.Count - 1] != '\n')
            {
                bytes.Add((byte)stream.ReadByte());
            }
            return Encoding.UTF8.GetString(bytes.ToArray(), 0, bytes.Count - 2);
        }

        private string Text(int size)
        {
            var bytes = new byte[size + 2];
            for (var got = 0; got < bytes.Length;)
            {
                got += stream.Read(bytes, got, bytes.Length - got);
            }
            return Encoding.UTF8.GetString(bytes, 0, size);
        }
    }

    internal sealed class Database : IDatabase
    {
        private readonly ConnectionMultiplexer server;

        internal Database(ConnectionMultiplexer server) { this.server = server; }

        public RedisResult Execute(string command, params object[] args)
        {
            return server.Ask(new object[] { command }.Concat(args).ToArray());
        }

        public long KeyDelete(RedisKey[] keys)
        {
            return (long)server.Ask(new object[] { "DEL" }.Concat(keys.Cast<object>()).ToArray());
        }

        public bool KeyDelete(RedisKey key) { return KeyDelete(new[] { key }) == 1; }

        public long SortedSetAdd(RedisKey key, SortedSetEntry[] values)
        {
            var pairs = values.SelectMany(value => new object[] { value.Score, value.Element });
            return (long)server.Ask(new object[] { "ZADD", key }.Concat(pairs).ToArray());
        }

        public bool SortedSetAdd(RedisKey key, RedisValue member, double score)
        {
            return SortedSetAdd(key, new[] { new SortedSetEntry(member, score) }) == 1;
        }

        public double SortedSetIncrement(RedisKey key, RedisValue member, double value)
        {
            return Number(server.Ask("ZINCRBY", key, value, member)).Value;
        }

        public RedisValue[] SortedSetRangeByRank(RedisKey key, long start, long stop, Order order)
        {
            return ((RedisResult[])server.Ask(Range(order), key, start, stop))
                .Select(member => (RedisValue)(string)member)
                .ToArray();
        }

        private static string Range(Order order) { return order == Order.Descending ? "ZREVRANGE" : "ZRANGE"; }

        public SortedSetEntry[] SortedSetRangeByRankWithScores(RedisKey key, long start, long stop, Order order)
        {
            var reply = (RedisResult[])server.Ask(Range(order), key, start, stop, "WITHSCORES");
            return Enumerable.Range(0, reply.Length / 2)
                .Select(i => new SortedSetEntry((string)reply[2 * i], Number(reply[2 * i + 1]).Value))
                .ToArray();
        }

        public long? SortedSetRank(RedisKey key, RedisValue member, Order order)
        {
            return (long?)server.Ask(order == Order.Descending ? "ZREVRANK" : "ZRANK", key, member).Reply;
        }

        public double? SortedSetScore(RedisKey key, RedisValue member) { return Number(server.Ask("ZSCORE", key, member)); }

        private static double? Number(RedisResult result)
        {
            return result.Reply == null ? (double?)null : double.Parse((string)result, CultureInfo.InvariantCulture);
        }
    }
}
