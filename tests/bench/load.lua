-- For wrk: one POST again and again; at the end the figures as one line of JSON.
-- Arguments: the file of the body, the model, the key.

function init(args)
  local file = assert(io.open(args[1], "rb"))
  wrk.body = file:read("*a")
  file:close()
  wrk.method = "POST"
  wrk.headers["Content-Type"] = "application/json"
  wrk.headers["Authorization"] = "Bearer " .. args[2]
end

function done(summary, latency)
  local wrong = summary.errors
  io.write(string.format(
    '\n{"requests":%d,"seconds":%f,"p50_us":%d,"p99_us":%d,"failed":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50), latency:percentile(99),
    wrong.connect + wrong.read + wrong.write + wrong.status + wrong.timeout))
end
