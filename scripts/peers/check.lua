-- wrk's part: sends the prepared requests in turn, each with an id of its own, and holds every answer against what
-- was asked with that id. An answer with a foreign id, another text or an error is wrong.

local threads = {}

function setup(thread)
  threads[#threads + 1] = thread
end

function init(args)
  local job = dofile(args[1])
  requests, expected = job.requests, job.expected
  last, asked = 10000000, {}
  right, wrong, sample = 0, 0, ""
end

function request()
  last = last + 1
  local which = last % #requests + 1
  asked[last] = which
  return table.concat(requests[which], tostring(last))
end

function response(status, headers, body)
  local id = tonumber(body:match('"id"%s*:%s*(%d+)'))
  local which = id and asked[id]
  if
    which
    and status == 200
    and body:find(table.concat(expected[which], tostring(id)), 1, true)
    and not body:find('"isError"%s*:%s*true')
  then
    asked[id] = nil
    right = right + 1
  else
    wrong = wrong + 1
    if sample == "" then
      sample = status .. " " .. body:sub(1, 300)
    end
  end
end

function done(summary, latency)
  local right, wrong, sample = 0, 0, ""
  for _, thread in ipairs(threads) do
    right = right + thread:get("right")
    wrong = wrong + thread:get("wrong")
    sample = sample .. thread:get("sample")
  end
  local errors = summary.errors
  print(
    string.format(
      'figures {"answers":%d,"seconds":%.6f,"p50_us":%d,"p99_us":%d,"right":%d,"wrong":%d,"broken":%d,"late":%d}',
      summary.requests, summary.duration / 1e6, latency:percentile(50), latency:percentile(99), right, wrong,
      errors.connect + errors.read + errors.write, errors.timeout
    )
  )
  print("sample " .. sample:gsub("[\r\n]", " "))
end
