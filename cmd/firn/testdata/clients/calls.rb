# Makes calls of redis-rb and of Rails' cache to the server at 127.0.0.1:PORT. The calls are the
# other arguments; of each it prints what comes back.
require 'redis'
require 'active_support'
require 'active_support/cache'
require 'active_support/cache/redis_cache_store'
require 'active_support/core_ext/integer/time'

port = Integer(ARGV.shift)
redis = Redis.new(port: port)
cache = ActiveSupport::Cache::RedisCacheStore.new(url: "redis://127.0.0.1:#{port}")
ARGV.each do |call|
  puts "ok #{eval(call).inspect}"
rescue StandardError => e
  puts "error #{e.message.tr("\n", ' ')}"
end
