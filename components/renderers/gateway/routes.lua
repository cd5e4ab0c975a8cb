-- The demos' routes: one JSON file each.
--
-- They are read when nginx loads its configuration, and again, by the workers, when the file
-- `revision` changes. nginx is not reloaded for them: that closes clients' idle connections, and a
-- request that is on its way through one is lost. What one worker has read the others take from
-- shared memory before their next request, so that all change at once.
local ffi = require "ffi"
local cjson = require "cjson.safe"
local counts = require "berth.counts"
local demo_file = require "berth.demo_file"
local health = require "berth.health"

-- As glibc and musl have it on 64-bit Linux.
ffi.cdef [[
typedef struct __dirstream DIR;
struct dirent {
  uint64_t d_ino; int64_t d_off; unsigned short d_reclen; unsigned char d_type; char d_name[256];
};
DIR *opendir(const char *name);
struct dirent *readdir(DIR *folder);
int closedir(DIR *folder);
]]

local shared = ngx.shared.berth_routes
local EVERY_S = 0.05

local M = { limits = {}, configuration = "" }

local function read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local content = file:read("*a")
  file:close()
  return content
end

local function add(state, text_of)
  local file = text_of.file
  local raw, why = cjson.decode(text_of.routes)
  if raw == nil then error("it is not JSON: " .. tostring(why), 0) end
  local found = demo_file.read(raw)
  if file ~= found.name .. ".json" then
    error("it is the file of demo `" .. found.name .. "`", 0)
  end
  for _, key in ipairs(found.keys) do
    for _, other in ipairs(state.keys) do
      if key.hash == other.hash then
        error("key `" .. key.name .. "` is also a key of demo `" .. other.demo.name .. "`", 0)
      end
    end
  end
  for _, key in ipairs(found.keys) do table.insert(state.keys, key) end
  state.demos[found.name] = found
end

-- Names in a folder. No program is run for it: nginx's master would take the end of one for the
-- end of a worker.
local function files(folder)
  local found, open = {}, ffi.C.opendir(folder)
  if open == nil then return found end
  while true do
    local entry = ffi.C.readdir(open)
    if entry == nil then break end
    local name = ffi.string(entry.d_name)
    if name:find("^[a-z0-9-]+%.json$") then table.insert(found, name) end
  end
  ffi.C.closedir(open)
  table.sort(found)
  return found
end

-- Everything of the demos from the texts of their files. A file that is broken is left out and
-- said, so that the other demos are served.
local function build(texts)
  local state = { demos = {}, keys = {}, left_out = {}, loaded = ngx.time() }
  for _, each in ipairs(texts) do
    local ok, why = pcall(add, state, each)
    if not ok then table.insert(state.left_out, { file = each.file, why = why }) end
  end
  return state
end

-- Ids of the replicas that requests may go to.
local function open_ones(state)
  local found = {}
  for _, demo in pairs(state.demos) do
    for _, role in pairs(demo.roles) do
      for _, kind in ipairs { "openai", "framing", "kserve" } do
        for _, one in ipairs(role[kind] and role[kind].replicas or {}) do
          if role.state == "serving" and not one.closed then found[one.id] = true end
        end
      end
    end
  end
  return found
end

local function publish(revision)
  local prefix, texts = ngx.config.prefix(), {}
  for i, file in ipairs(files(prefix .. "routes.d")) do
    texts[i] = { file = file, routes = read(prefix .. "routes.d/" .. file) or "" }
  end
  local state = build(texts)
  for _, each in ipairs(state.left_out) do
    ngx.log(ngx.ERR, "left out: routes.d/", each.file, ": ", each.why)
  end
  -- When a configuration is loaded nothing has been opened: what was seen before still holds.
  local before = M.state and open_ones(M.state)
  for id in pairs(before and open_ones(state) or {}) do
    if not before[id] then health.opened(id) end
  end
  shared:set("texts", cjson.encode { revision = revision, texts = texts })
  shared:incr("version", 1, 0)
end

local function on_disk()
  return (read(ngx.config.prefix() .. "revision") or ""):gsub("%s", "")
end

-- The routes as they are now; to be called once for a request, which keeps what it got.
function M.now()
  local version = shared:get("version")
  if version ~= M.version then
    local published = cjson.decode(shared:get("texts"))
    local state = build(published.texts)
    state.revision = published.revision
    M.version, M.state = version, state
  end
  return M.state
end

-- Why a demo's file would be left out, or nil. `text_of`: its file name and routes.
function M.trouble(text_of)
  local published = cjson.decode(shared:get("texts"))
  local texts = {}
  for _, each in ipairs(published.texts) do
    if each.file ~= text_of.file then table.insert(texts, each) end
  end
  local state = build(texts)
  local ok, why = pcall(add, state, text_of)
  return not ok and why or nil
end

-- Run by the master for each configuration that it loads.
function M.load(limits)
  M.limits = limits
  M.configuration = (read(ngx.config.prefix() .. "configuration") or ""):gsub("%s", "")
  publish((on_disk()))
  M.now()
  counts.new_generation()
end

-- Run by a worker that starts.
function M.watch()
  ngx.timer.every(EVERY_S, function(premature)
    if premature then return end
    local revision = on_disk()
    if revision ~= M.now().revision then publish(revision) end
  end)
end

function M.role(demo_name, role_name)
  local found = M.now().demos[demo_name or ""]
  return found and found.roles[role_name or ""]
end

-- The role that a request's `model` means: a role's name, `demo/role`, or the name of a model that
-- a role of the demo has; among several with that model one that is served, else the first.
function M.meant(found, asked)
  local name = asked:match("^" .. found.name:gsub("%-", "%%-") .. "/(.+)$") or asked
  if found.roles[name] then return found.roles[name] end
  local first
  for _, each in ipairs(found.names) do
    local candidate = found.roles[each]
    if candidate.model == asked then
      if candidate.state == "serving" then return candidate end
      first = first or candidate
    end
  end
  return first
end

-- Each replica of each endpoint that is served.
function M.replicas()
  local found, seen = {}, {}
  for _, each in pairs(M.now().demos) do
    for _, candidate in pairs(each.roles) do
      for _, kind in ipairs { "openai", "framing", "kserve" } do
        for _, one in ipairs(candidate[kind] and candidate[kind].replicas or {}) do
          if candidate.state == "serving" and not seen[one.id] then
            seen[one.id] = true
            table.insert(found, one)
          end
        end
      end
    end
  end
  return found
end

return M
