-- One demo's file of routes: what it must be, and what it means.
--
-- Whatever is wrong is an error whose text names the place in the file.
local cjson = require "cjson.safe"
local keys = require "berth.keys"

local M = {}

local function need(holds, what)
  if not holds then error(what, 0) end
end

local function text(value, what, pattern)
  need(type(value) == "string" and value:find(pattern or "^[ -~]+$"), what)
  return value
end

local NAME = "^[a-z0-9][a-z0-9-]*$"
local MODEL = "^[A-Za-z0-9][A-Za-z0-9._/-]*$"

local LOOPBACK = "^127%.0%.0%.1:%d+$"
local HEALTH = "^/[A-Za-z0-9._/-]*$"

local function as_json(name)
  return (cjson.encode(name):gsub("\\/", "/"))
end

local function given(value)
  return value ~= nil and value ~= cjson.null
end

-- Engines listen on the host's loopback only, so nothing else is ever called.
local function replica(raw, at, health)
  if given(raw.health) then health = text(raw.health, at .. ".health", HEALTH) end
  local port = tonumber(text(raw.address, at .. ".address", LOOPBACK):match(":(%d+)$"))
  need(port > 0 and port < 65536, at .. ".address")
  local found = {
    address = raw.address, port = port, unit = text(raw.unit, at .. ".unit"),
    health = health, id = raw.address .. health, check_port = port,
    closed = given(raw.closed) and raw.closed ~= "" and text(raw.closed, at .. ".closed") or nil,
  }
  if given(raw.checked_at) then
    found.check_port =
      tonumber(text(raw.checked_at, at .. ".checked_at", LOOPBACK):match(":(%d+)$"))
    found.id = raw.address .. "=" .. raw.checked_at .. health
  end
  if given(raw.model) then
    found.model = text(raw.model, at .. ".model", MODEL)
    found.quoted = as_json(found.model)
  end
  return found
end

local function endpoint(raw, at)
  if not given(raw) then return nil end
  need(type(raw) == "table", at)
  local health = text(raw.health, at .. ".health", HEALTH)
  local found = { model = text(raw.model, at .. ".model", MODEL), replicas = {} }
  found.quoted = as_json(found.model)
  need(type(raw.replicas) == "table", at .. ".replicas")
  for i, each in ipairs(raw.replicas) do
    found.replicas[i] = replica(each, at .. ".replicas[" .. i - 1 .. "]", health)
  end
  return found
end

local function role(raw, name, demo)
  local at = "roles." .. name
  text(name, at .. ": its name", NAME)
  need(raw.state == "serving" or raw.state == "not loaded", at .. ".state")
  local found = {
    name = name, demo = demo, state = raw.state, quoted = '"' .. name .. '"',
    count = "role " .. demo .. "/" .. name,
    model = text(raw.model, at .. ".model", MODEL),
    engine = text(raw.engine, at .. ".engine", NAME),
    reason = type(raw.reason) == "string" and raw.reason or "",
    fallback = given(raw.fallback) and text(raw.fallback, at .. ".fallback", MODEL) or nil,
    retry_after_s = tonumber(raw.retry_after_s),
    openai = endpoint(raw.openai, at .. ".openai"),
    framing = endpoint(raw.framing, at .. ".framing"),
    kserve = endpoint(raw.kserve, at .. ".kserve"),
  }
  need(found.retry_after_s and found.retry_after_s > 0, at .. ".retry_after_s")
  need(raw.state ~= "serving" or found.openai and #found.openai.replicas > 0, at .. ".openai")
  return found
end

-- The demo that a decoded file means.
function M.read(raw)
  need(type(raw) == "table" and raw.version == 1, "it is not a file of routes, version 1")
  local found = { name = text(raw.demo, "demo", NAME), roles = {}, names = {}, keys = {} }
  local limit = given(raw.connections_per_key) and raw.connections_per_key
  need(not limit or type(limit) == "number" and limit >= 1, "connections_per_key")
  need(type(raw.keys) == "table" and type(raw.roles) == "table", "keys and roles")
  for i, key in ipairs(raw.keys) do
    local at = "keys[" .. i - 1 .. "]"
    local hex = text(key.sha256, at .. ".sha256", "^[0-9a-f]+$")
    need(#hex == 64, at .. ".sha256")
    found.keys[i] = {
      name = text(key.name, at .. ".name", NAME), hash = keys.from_hex(hex), demo = found,
      count = "key " .. hex:sub(1, 16), limit = limit or nil,
    }
  end
  for name, each in pairs(raw.roles) do
    need(type(each) == "table", "roles." .. name)
    found.roles[name] = role(each, name, found.name)
    table.insert(found.names, name)
  end
  table.sort(found.names)
  return found
end

return M
