-- An engine's answer on its way to the client: its model's name becomes the role's, its errors take
-- OpenAI's shape, and a stream that does not come to its proper end gets an error event.
--
-- A stream goes on line by line, each as soon as it is whole. One that is given up has no proper end
-- in HTTP either: nginx closes the client's connection after it, and a client that saw a proper end
-- might have sent its next request on it by then.
local cjson = require "cjson.safe"
local balance = require "berth.balance"
local engine_error = require "berth.engine_error"
local json_members = require "berth.json_members"
local refuse = require "berth.refuse"
local routes = require "berth.routes"

local byte, find, sub = string.byte, string.find, string.sub
local SPACE, QUOTE, OPEN_LIST = 32, 34, 91

local M = {}

-- Outcome of an answer that its engine ended with an error event.
local FAILED = "engine_failed"

-- Headers that an engine may set for the client; nginx adds those of the connection.
local function only_known_headers()
  for name in pairs(ngx.resp.get_headers(0, true)) do
    local lower = name:lower()
    if lower ~= "content-type" and lower ~= "inference-header-content-length"
      and lower ~= "retry-after" and lower ~= "connection" and lower ~= "transfer-encoding"
      and lower ~= "content-length" then
      ngx.header[name] = nil
    end
  end
end

local function sane(id)
  return id and #id <= 64 and id:find("^[A-Za-z0-9._-]+$") and id
end

-- The id that a request has everywhere: the client's own where it is a sane one.
function M.request_id()
  local var = ngx.var
  local id = var.berth_request_id
  if not id or id == "" then
    id = sane(var.http_x_request_id) or var.request_id
    var.berth_request_id = id
  end
  return id
end

-- The length of an answer whose name is yet to be exchanged, where the engine says how long its own
-- is: what is left over is filled with spaces. So nginx sends headers and answer at once, where an
-- answer of unknown length costs the client two reads.
local function promised(state)
  state.size, state.expected = 0, tonumber(ngx.header["Content-Length"])
  state.promised = state.expected and state.expected + #state.quoted
  return state.promised
end

-- KServe's binary answers: as many bytes of JSON as a header says, then the tensors. The JSON is
-- filled up with spaces, so that both lengths are known before it is there.
local function tensors_follow(state)
  local name = "Inference-Header-Content-Length"
  local length = state.shape == "kserve" and tonumber(ngx.header[name])
  if not length then return false end
  state.head = length
  ngx.header[name] = length + #state.quoted
  return true
end

function M.headers()
  local ctx = ngx.ctx
  if ctx.role then
    only_known_headers()
    local kind = ngx.header["Content-Type"] or ""
    local state = {
      calls = 0, rest = "", last_at = ngx.now(), quoted = ctx.role.quoted, shape = ctx.shape,
    }
    state.member = ctx.member or "model"
    if ngx.status >= 400 then
      state.kind = "error"
      if ngx.status == 503 then balance.refused(ctx.endpoint, ngx.var.berth_replica_id) end
      -- FastAPI's status for a body that does not fit its schema.
      if ngx.status == 422 then ngx.status = 400 end
      if ngx.status == 503 and not ngx.header["Retry-After"] then
        ngx.header["Retry-After"] = ctx.role.retry_after_s
      end
      if ctx.shape ~= "kserve" then ngx.header["Content-Type"] = "application/json" end
    elseif find(kind, "text/event-stream", 1, true) then
      state.kind = "stream"
      ngx.header["Cache-Control"] = "no-cache"
    elseif find(kind, "application/json", 1, true) then
      state.kind = "json"
    elseif tensors_follow(state) then
      state.kind = "tensors"
    end
    if state.kind then
      ngx.header["Content-Length"] = (state.kind == "json" or state.kind == "tensors")
        and promised(state) or nil
      ctx.answer = state
    end
    if ctx.role.fallback then ngx.header["X-Berth-Fallback"] = ctx.role.fallback end
  end
  ngx.header["X-Request-Id"] = M.request_id()
end

local function count_tokens(text)
  local from, to = json_members.find(text, "usage", true)
  local usage = from and cjson.decode(sub(text, from, to))
  if type(usage) == "table" then
    ngx.ctx.prompt_tokens = tonumber(usage.prompt_tokens)
    ngx.ctx.completion_tokens = tonumber(usage.completion_tokens)
  end
end

-- An event with the role's name. A stream's events begin alike up to the name's end, so what was
-- found in one holds for the next that has the same bytes there.
local function renamed(state, payload)
  local before = state.before
  if before and sub(payload, 1, #before) == before then
    return state.instead .. sub(payload, #before + 1)
  end
  local from, to = json_members.find(payload, state.member, true)
  if not from then return payload end
  local instead = sub(payload, 1, from - 1) .. state.quoted
  if byte(payload, to) == QUOTE then state.before, state.instead = sub(payload, 1, to), instead end
  return instead .. sub(payload, to + 1)
end

-- One line of a stream, without its line feed.
local function line_of(state, line)
  local from
  if sub(line, 1, 6) == "data: " and byte(line, 7) ~= SPACE then
    from = 6
  else
    from = select(2, find(line, "^data: *"))
  end
  if not from then
    if line == "" then return line end
    if state.shape == "framing" then
      local event = line:match("^event: *(%a+)")
      if event == "end" or event == "error" then state.done = true end
      if event == "error" then ngx.ctx.outcome = FAILED end
    end
    return line
  end
  if byte(line, from + 1) == OPEN_LIST and find(line, "^%[DONE%]", from + 1) then
    state.done = true
    return state.failed and "" or line
  end
  local payload = sub(line, from + 1)
  if state.shape == "openai" then
    if find(payload, '"error"', 1, true) then
      local at = json_members.find(payload, "error", true)
      if at and sub(payload, at, at + 3) ~= "null" or find(payload, '"object"%s*:%s*"error"') then
        state.failed, state.done = true, true
        ngx.ctx.outcome = FAILED
        return "data: " .. engine_error.openai(payload, 500)
      end
    end
    if find(payload, '"usage"', 1, true) and find(payload, '"usage"%s*:%s*{') then
      count_tokens(payload)
    end
  end
  return sub(line, 1, from) .. renamed(state, payload)
end

local function lines_of(state, chunk)
  local text = state.rest ~= "" and state.rest .. chunk or chunk
  local out, from = {}, 1
  while true do
    local at = find(text, "\n", from, true)
    if not at then break end
    out[#out + 1] = line_of(state, sub(text, from, at - 1))
    from = at + 1
  end
  state.rest = sub(text, from)
  if #out == 0 then return "" end
  out[#out + 1] = ""
  return table.concat(out, "\n")
end

-- What a client is told in the place of what it does not get.
local function failure(state, message, code)
  state.over, ngx.ctx.outcome = true, code
  ngx.log(ngx.ERR, "stream of role ", ngx.ctx.role.name, " from ", ngx.var.berth_replica, ": ",
    message)
  local body = refuse.body { message = message, kind = "server_error", code = code }
  if state.shape == "kserve" then body = '{"error":' .. cjson.encode(message) .. "}" end
  -- Blank lines first, which end an event that was begun.
  return (state.shape == "framing" and "\n\nevent: error\n" or "\n\n") .. "data: " .. body .. "\n\n"
end

local DIED = "the engine ended before its answer did"
local SILENT = "the engine fell silent in the middle of its answer"
local SLOW = "the answer took longer than this gateway waits for one"
-- Seconds by which nginx's timer may end before the silence has lasted its time: it is not set anew
-- for what comes within 300 ms (NGX_TIMER_LAZY_DELAY in ngx_event_timer.h).
local EARLY_S = 0.35

local function stream(state, chunk, last)
  if state.over then
    if chunk ~= "" then return nil end
    return "", last
  end
  -- nginx passes an empty piece on when it gives an answer up; when it passes one on after the
  -- headers, nothing has come before.
  local cut = chunk == "" and not last and state.calls > 1
  local out = lines_of(state, chunk)
  if last and state.rest ~= "" then out = out .. line_of(state, state.rest) end
  local now = ngx.now()
  if cut and not state.done and now - state.last_at >= routes.limits.silence_s - EARLY_S then
    return out .. failure(state, SILENT, "engine_silent"), false
  end
  if cut or last and not state.done and state.shape ~= "kserve" then
    -- A client that has the whole answer is not bothered with what came after it.
    local told = state.done and "" or out .. failure(state, DIED, "engine_ended")
    return told, last or state.done == true
  end
  state.last_at = now
  if not last and now - ngx.req.start_time() > routes.limits.timeout_s then
    return out .. failure(state, SLOW, "too_long"), false
  end
  return out, last
end

local function tensors(state, chunk, last)
  if state.over then return chunk, last end
  state[#state + 1] = chunk
  local text = table.concat(state)
  if #text < state.head and not last then return "", false end
  state.over = true
  local head = json_members.replace(sub(text, 1, state.head), state.member, state.quoted)
  local filled = head .. (" "):rep(state.head + #state.quoted - #head)
  return filled .. sub(text, state.head + 1), last
end

local function whole(state, chunk, last)
  if state.over then return chunk, last end
  state[#state + 1] = chunk
  if state.expected then
    state.size = state.size + #chunk
    if state.size < state.expected then return "", last end
    state.over = true
  elseif not last then
    return "", false
  end
  local text = table.concat(state)
  if state.kind == "error" then
    if state.shape == "kserve" then return text, true end
    return engine_error.openai(text, ngx.status), true
  end
  if state.shape == "openai" then count_tokens(text) end
  text = json_members.replace(text, state.member, state.quoted)
  return state.promised and text .. (" "):rep(state.promised - #text) or text, last
end

function M.body()
  local state = ngx.ctx.answer
  if not state then return end
  local chunk, last = ngx.arg[1], ngx.arg[2]
  state.calls = state.calls + 1
  if chunk ~= "" and not ngx.ctx.first_byte then ngx.ctx.first_byte = ngx.now() end
  local out, ends
  if state.kind == "stream" then
    out, ends = stream(state, chunk, last)
    if not out then return ngx.ERROR end
  elseif state.kind == "tensors" then
    out, ends = tensors(state, chunk, last)
  else
    out, ends = whole(state, chunk, last)
  end
  if out ~= chunk then ngx.arg[1] = out end
  if ends ~= last then ngx.arg[2] = ends end
end

return M
