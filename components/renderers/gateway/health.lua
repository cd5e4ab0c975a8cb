-- Which replicas get no traffic, and why: seen by a check of each once a second, and by requests
-- that could not connect.
local down = ngx.shared.berth_health
local routes = ngx.shared.berth_routes

local M = {}

local EVERY_S = 1
local ANSWER_MS = 2000
-- An engine under load may answer late, so only several late answers in a row count as dead.
local LATE = 3
-- Marks fade, so that a checker that died does not keep a replica out of use.
local MARK_S = 30
local UNREACHABLE_S = 2

-- Why a replica gets no traffic, or nil.
function M.trouble(replica)
  return down:get(replica.id)
end

-- A replica that is opened was asked by whoever opens it; what was seen before is of no account.
function M.opened(id)
  down:delete(id)
end

function M.could_not_connect(id)
  down:set(id, "it could not be reached", UNREACHABLE_S)
end

function M.refused(id)
  down:set(id, "it answered 503", UNREACHABLE_S)
end

-- nil where it is well; else why not, and whether it was only late.
local function ask(replica)
  local socket = ngx.socket.tcp()
  socket:settimeouts(1000, 1000, ANSWER_MS)
  local ok, why = socket:connect("127.0.0.1", replica.check_port)
  if not ok then return "connecting: " .. why, why == "timeout" end
  socket:send("GET " .. replica.health .. " HTTP/1.0\r\nHost: localhost\r\n\r\n")
  local line, late = socket:receive("*l")
  socket:close()
  if not line then return "health check: " .. late, late == "timeout" end
  local status = line:match("^HTTP/1%.[01] (%d+)")
  if status ~= "200" then return "health check answered " .. (status or "no HTTP") end
end

local late = {}

local function check(replica)
  local version = routes:get("version")
  local why, only_late = ask(replica)
  -- It may have been opened meanwhile, after what was seen.
  if routes:get("version") ~= version then return end
  late[replica.id] = only_late and (late[replica.id] or 0) + 1 or 0
  if not why then
    if down:get(replica.id) then ngx.log(ngx.NOTICE, replica.id, " is well again") end
    down:delete(replica.id)
  elseif not only_late or late[replica.id] >= LATE then
    if not down:get(replica.id) then ngx.log(ngx.WARN, replica.id, ": ", why) end
    down:set(replica.id, why, MARK_S)
  end
end

-- Run by a worker that starts; the first of them checks for all. `replicas()` gives the present
-- ones.
function M.start(replicas)
  if ngx.worker.id() ~= 0 then return end
  local busy = false
  local function round(premature)
    if premature or busy then return end
    busy = true
    local threads = {}
    for _, replica in ipairs(replicas()) do
      table.insert(threads, ngx.thread.spawn(check, replica))
    end
    for _, thread in ipairs(threads) do ngx.thread.wait(thread) end
    busy = false
  end
  ngx.timer.at(0, round)
  ngx.timer.every(EVERY_S, round)
end

return M
