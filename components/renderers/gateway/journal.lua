-- One line of JSON a request, when it is over. It holds neither key nor prompt.
local cjson = require "cjson.safe"
local answer = require "berth.answer"
local counts = require "berth.counts"
local health = require "berth.health"

local M = {}

local function seconds(value)
  return value and value ~= "" and string.format("%.3f", value) or "null"
end

local function text(value)
  return value and value ~= "" and cjson.encode(value):gsub("\\/", "/") or "null"
end

local function outcome(var, ctx)
  if ctx.outcome then return ctx.outcome end
  if var.berth_outcome ~= "" then return var.berth_outcome end
  if var.request_completion ~= "OK" then return ctx.role and "cut" or "client_gone" end
  return ngx.status < 400 and "ok" or "refused"
end

-- The last of the values that nginx keeps of each try.
local function last(values)
  return values and values:match("([^ ,:]+)$")
end

local function line(var, ctx)
  local status = ngx.status
  local started = ngx.req.start_time()
  return '{"time":' .. text(var.time_iso8601)
    .. ',"request_id":' .. text(answer.request_id())
    .. ',"demo":' .. text(var.berth_demo)
    .. ',"role":' .. text(var.berth_role)
    .. ',"model":' .. text(var.berth_role)
    .. ',"engine":' .. text(var.berth_engine)
    .. ',"replica":' .. text(var.berth_replica)
    .. ',"method":' .. text((var.request or ""):match("^[A-Z]+"))
    .. ',"path":' .. text((var.request_uri or ""):match("^[^?]*"):sub(1, 200))
    .. ',"status":' .. status
    .. ',"outcome":' .. text(outcome(var, ctx))
    .. ',"first_byte_s":' .. seconds(ctx.first_byte and ctx.first_byte - started)
    .. ',"total_s":' .. seconds(ngx.now() - started)
    .. ',"prompt_tokens":' .. (ctx.prompt_tokens or "null")
    .. ',"completion_tokens":' .. (ctx.completion_tokens or "null")
    .. ',"bytes":' .. (var.bytes_sent or 0) .. "}"
end

function M.write()
  local var, ctx = ngx.var, ngx.ctx
  if var.berth_key and var.berth_key ~= "" then counts.give(var.berth_key) end
  if var.berth_role_count and var.berth_role_count ~= "" then counts.give(var.berth_role_count) end
  if var.berth_replica and var.berth_replica ~= "" then
    counts.give(var.berth_replica_id)
    if last(var.upstream_connect_time) == "-" and last(var.upstream_status) == "502" then
      health.could_not_connect(var.berth_replica_id)
    end
  end
  var.berth_log = line(var, ctx)
  -- Else it waits until ten times of what was in use with it are (worker.lua).
  if ctx.large then collectgarbage() end
end

return M
