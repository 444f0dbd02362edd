// As much of UnityEngine as docs/http.md uses, without Unity; and what the test asks of the component there.
using System;
using System.Collections;
using System.IO;
using System.Net;
using System.Runtime.Serialization.Json;
using System.Text;
using UnityEngine;

namespace UnityEngine
{
    public class MonoBehaviour { }

    public class WaitForSecondsRealtime
    {
        public WaitForSecondsRealtime(float seconds) { }
    }

    public static class Debug
    {
        public static void LogError(object message) { Console.WriteLine("error " + message); }
    }

    public static class JsonUtility
    {
        public static string ToJson(object value)
        {
            var stream = new MemoryStream();
            new DataContractJsonSerializer(value.GetType()).WriteObject(stream, value);
            return Encoding.UTF8.GetString(stream.ToArray());
        }

        public static T FromJson<T>(string text)
        {
            return (T)new DataContractJsonSerializer(typeof(T)).ReadObject(new MemoryStream(Encoding.UTF8.GetBytes(text)));
        }
    }
}

namespace UnityEngine.Networking
{
    public class DownloadHandlerBuffer
    {
        public string text = "";
    }

    public class UploadHandlerRaw
    {
        public readonly byte[] data;
        public UploadHandlerRaw(byte[] data) { this.data = data; }
    }

    public class UnityWebRequest : IDisposable
    {
        readonly HttpWebRequest request;
        public DownloadHandlerBuffer downloadHandler;
        public UploadHandlerRaw uploadHandler;
        public int timeout;
        public long responseCode;

        public UnityWebRequest(string url, string method)
        {
            request = (HttpWebRequest)WebRequest.Create(url);
            request.Method = method;
            request.KeepAlive = false;
            request.ServicePoint.Expect100Continue = false;
        }

        public void SetRequestHeader(string name, string value)
        {
            if (name == "Content-Type")
            {
                request.ContentType = value;
            }
            else
            {
                request.Headers[name] = value;
            }
        }

        public object SendWebRequest()
        {
            request.Timeout = timeout * 1000;
            responseCode = -1;
            try
            {
                if (uploadHandler != null)
                {
                    using (Stream stream = request.GetRequestStream())
                    {
                        stream.Write(uploadHandler.data, 0, uploadHandler.data.Length);
                    }
                }
                Take((HttpWebResponse)request.GetResponse());
            }
            catch (WebException error)
            {
                if (error.Response != null)
                {
                    Take((HttpWebResponse)error.Response);
                }
            }
            return null;
        }

        void Take(HttpWebResponse response)
        {
            responseCode = (long)response.StatusCode;
            downloadHandler.text = new StreamReader(response.GetResponseStream()).ReadToEnd();
        }

        public void Dispose() { }
    }
}

public static class Program
{
    static void Run(IEnumerator steps)
    {
        while (steps.MoveNext()) { }
    }

    public static void Main(string[] words) // URL TOKEN BOARD MEMBER VALUE
    {
        var board = new Leaderboard { url = words[0], token = words[1] };
        Run(board.Submit(words[2], words[3], words[4], (sent) => Console.WriteLine("sent " + sent.ToString().ToLower())));
        Run(board.Top(words[2], 10, (page) =>
        {
            foreach (var row in page == null ? new Leaderboard.Row[0] : page.rows)
            {
                Console.WriteLine(row.rank + " " + row.member + " " + row.score);
            }
        }));
    }
}
