# frozen_string_literal: true

# Makes Firn's ids in this process, under a lease of a worker, as docs/leases.md specifies: Ruby 3.1, standard library only.
#
#   require_relative 'firn_lease'
#   ids = Firn::Lease.new(['http://10.0.0.1:7070', 'http://10.0.0.2:7070'], token: ENV['TOKEN'])
#   ids.next          # an Integer that no other process makes
#   ids.take(1000)    # a list of them, faster
#   ids.close
#
# All threads may share a Lease. After a fork, the child takes a lease of its own. Nothing is kept on disk.
require 'erb'
require 'json'
require 'net/http'
require 'securerandom'
require 'socket'
require 'timeout'
require 'uri'

module Firn
  # No id can be made: the message says why.
  class LeaseError < StandardError; end

  class Lease
    Lost = Class.new(StandardError)
    private_constant :Lost

    @all = ObjectSpace::WeakMap.new

    class << self
      def remember(lease) = @all[lease] = true

      # In a forked child. A process id alone is not enough: they are reused.
      def forked = @all.keys.each { |lease| lease.send(:reset) }
    end

    # The servers share one store. The timeout is how long a call waits for an id, in seconds. By default it is 10, and 40 while
    # a server is asked for a lease: for up to 24 seconds after its store was restarted it waits before it answers.
    def initialize(servers, pool: 'default', token: nil, timeout: nil)
      raise ArgumentError, "servers is #{servers.inspect}; it is a list of URLs, as ['http://127.0.0.1:7070']" unless servers.is_a?(Array) && servers.any?
      raise ArgumentError, "timeout is #{timeout.inspect}; it is a number of seconds" unless timeout.nil? || (timeout.is_a?(Numeric) && timeout >= 0)

      @servers = servers.map { |s| Server.new(s) }
      @pool, @token, @timeout, @closed = pool, token, timeout, false
      reset
      Lease.remember(self)
    end

    # An id. Waits for one if it must.
    def next = take(1).first

    # A list of n ids.
    def take(n)
      raise ArgumentError, "take(#{n.inspect}): it takes a number of ids" unless n.is_a?(Integer)

      ids, used, began = [], nil, nanoseconds
      while n.positive?
        reset if Process.pid != @pid
        lock, changed = @lock, @changed
        raise LeaseError, 'take was called within take, as by a trap handler: let the handler set a flag instead' if lock.owned?

        lock.synchronize do
          raise LeaseError, 'the lease is closed' if @closed

          @thread ||= Thread.new { run }
          ids, used = [], @grant unless @grant.equal?(used)
          now = nanoseconds
          next if used&.make(ids, n, now)

          left = (@timeout || (@asking || (used && !used.late?(now)) ? 40 : 10)) - (now - began) / 1e9
          why = @why || 'no server has answered yet'
          why = 'the background of this process has not run in time: does something block it?' if used&.late?(now)
          raise LeaseError, "no lease of pool #{@pool} allows an id now: #{why}" if left <= 0

          changed.wait(lock, [used ? used.pause(now) : 1.0, left].min)
        end
        return ids if ids.size == n && @grant.equal?(used) # else a trap handler has forked, or the lease was lost
      end
      []
    rescue ThreadError => e # "can't be called from trap context"
      raise LeaseError, "no id can be made here: #{e.message}"
    end

    # Makes no more ids. Others get the worker when the lease has ended.
    def close
      @closed = true
      @grant = nil
    end

    def inspect = "#<Firn::Lease of pool #{@pool}>"

    # A copy, also one written with Marshal, would make the same ids.
    def initialize_copy(_) = raise(TypeError, 'a lease cannot be copied: make another one')

    def marshal_dump = raise(TypeError, 'a lease cannot be kept or sent: make another one')

    private

    def nanoseconds = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

    def reset
      @lock, @changed = Mutex.new, ConditionVariable.new # the parent's other threads may have held the lock
      @grant = @thread = nil
      @why, @asking, @pid = nil, false, Process.pid
    end

    # Takes a lease and renews it. After any failure it asks the next server, after a round of all in a second.
    def run
      failed = 0
      until @closed
        g, asked, server = @grant, nanoseconds, @servers.first
        @grant = g = nil if g && g.clock(asked) >= g.end
        counts, @asking = true, g.nil?
        begin
          answer = ask(server, g)
          @lock.synchronize do
            g ? g.renew(answer, asked, nanoseconds) : @grant = g = Grant.new(answer, nanoseconds)
          end
          failed, @why, pause = 0, 'its server allows none yet', g.look - (nanoseconds - asked) / 1e9
        rescue Lost => e
          @grant, @why, pause = nil, "#{server}: #{e.message}", g.renewed ? 0 : 1.0
        rescue Exception => e # whatever it is: the thread must go on
          server.failed += 1
          @servers, @why = @servers.rotate, "#{server}: #{e.message.lines.first&.chomp}"
          pause = ((failed += 1) % @servers.size).zero? ? 1.0 : 0
          counts = !g&.late?(nanoseconds)
        end
        @asking = g.nil? && !pause.positive? # at once, the next server
        @lock.synchronize do
          g.asked = asked if g && counts && asked > g.asked
          @changed.broadcast
        end
        sleep(pause) if pause.positive?
      end
    end

    def ask(server, grant)
      limit, once = grant ? 2.0 : 35.0, SecureRandom.hex(8)
      ends = nanoseconds + limit * 1e9
      query = grant ? "/renew?end=#{grant.end}&once=#{once}" : "?once=#{once}"
      request = Net::HTTP::Post.new("#{server.uri.path.chomp('/')}/v1/leases/#{ERB::Util.url_encode(@pool)}#{query}")
      request['Authorization'] = "Bearer #{@token}" if @token
      request['Firn-Lease'] = grant.lease if grant
      request['Content-Type'] = 'text/plain' # else Net::HTTP warns
      request['Content-Length'] = '0'
      http = Net::HTTP.new(server.uri.hostname, server.uri.port, nil)
      http.ipaddr = server.address
      http.use_ssl = server.uri.scheme == 'https'
      left = [(ends - nanoseconds) / 1e9, 0.001].max
      http.open_timeout, http.read_timeout = [2.0, left].min, left
      response = Timeout.timeout(left) { http.start { http.request(request) } }
      a = begin
        JSON.parse(response.body)
      rescue JSON::ParserError
        nil # a proxy's page
      end
      a = {} unless a.is_a?(Hash)
      lease = a['lease']
      if response.code == '200' && lease.is_a?(String) && lease.match?(/\A[!-~]+\z/) && (grant.nil? || lease == grant.lease)
        return a if a['once'] == once

        raise LeaseError, 'its answer is to another request: is there a cache in front of it?'
      end

      error = a['error'].is_a?(Hash) ? a['error'] : {}
      raise Lost, error['message'].to_s if grant && response.code == '410' && error['code'] == 'lease_lost'

      raise LeaseError, error['message'] || "status #{response.code}, and no answer to this request"
    end

    # A server and its addresses. A look-up can take longer than a request may, and cannot be interrupted: it runs aside, and
    # meanwhile those found before count.
    class Server
      attr_reader :uri
      attr_accessor :failed

      def initialize(url)
        @uri, @addresses, @failed = URI(url), [], 0
        raise ArgumentError, "server #{url} must be a URL, as http://127.0.0.1:7070" unless @uri.is_a?(URI::HTTP) && @uri.host
      end

      # An address; the next one after a failure.
      def address
        @looking = Thread.new { look_up } unless @looking&.alive?
        @looking.join(@addresses.empty? ? 2.0 : 0.3) # a name that is not found must not delay the next server
        raise LeaseError, 'its name was not found' if @addresses.empty?

        @addresses[@failed % @addresses.size]
      end

      def to_s = @uri.to_s

      private

      def look_up
        found = Addrinfo.getaddrinfo(@uri.hostname, nil, nil, :STREAM)
        @addresses = found.sort_by { |a| [a.afamily, a.ip_address] }.map(&:ip_address).uniq # in one order each time
      rescue SocketError, SystemCallError
        # Those found before count.
      end
    end
    private_constant :Server

    # The positions [p + 1, end) of one worker, and a clock that never goes back.
    class Grant
      attr_reader :lease, :look, :end, :renewed
      attr_accessor :asked

      def initialize(a, now)
        @lease, @p, @end = a['lease'], number(a, 'first') - 1, number(a, 'end')
        @shown = @held = number(a, 'clock')
        @at, @unit = now, number(a, 'unit_ns', 1)
        @bits, @time, @sequence = %w[sequence_bits time_shift sequence_shift].map { |name| small(a, name) }
        @mask, @base, @look, @renewed = (1 << @bits) - 1, number(a, 'base'), small(a, 'look_ms', 1, 1 << 31) / 1000.0, false
        @asked = now # when the last request that counts began: see docs/leases.md
        # Two requests without an answer and the pause between them take 5 seconds, and threads are late.
        @patience = ([@look, 3].max + 3.5) * 1e9
      end

      def renew(a, asked, now)
        clock, last = number(a, 'clock'), number(a, 'end')
        @end, @renewed = [@end, last].max, true
        raise Lost, "the server's clock is more than 9 seconds behind this client's" if clock(asked) - clock > ticks(9_000_000_000 + @unit)

        own, latest = clock(now), clock + ticks(now - asked + @unit)
        @held, @shown, @at = own, own.clamp(clock, latest), now unless own.between?(clock, latest)
      end

      # Adds ids of the clock's tick until there are n, and returns whether it added any.
      def make(ids, n, now)
        return false if late?(now)

        clock = clock(now)
        q = [@p + 1, clock].max
        stop = [q + n - ids.size, @end, (clock >> @bits) + 1 << @bits].min
        return false if q >= stop

        @p = stop - 1
        q.upto(@p) { |p| ids << (p >> @bits << @time | (p & @mask) << @sequence | @base) }
        true
      end

      # The seconds to the next tick; when the lease has ended, to a look for a renewal.
      def pause(now) = late?(now) || [@p + 1, clock(now)].max >= @end ? 1.0 : (@unit - (now - @at) % @unit) / 1e9

      # The server's clock, but while that is behind, this clock's own at half its speed.
      def clock(now) = [@shown + ticks(now - @at), @held + ticks((now - @at) / 2)].max

      # Whether the background did not run, as beside many threads that compute, or after the process was stopped: the lease
      # may be lost.
      def late?(now) = now - @asked > @patience

      private

      def ticks(elapsed) = elapsed / @unit << @bits

      def number(a, name, least = 0)
        text = a[name]
        n = text.is_a?(String) && text.match?(/\A(0|[1-9][0-9]{0,18})\z/) ? text.to_i : -1
        n >= least && n < 1 << 63 ? n : raise(LeaseError, "its answer has #{name} #{text.inspect}, which must be the text of a number below 2^63")
      end

      def small(a, name, least = 0, most = 62)
        n = a[name]
        n.is_a?(Integer) && n.between?(least, most) ? n : raise(LeaseError, "its answer has #{name} #{n.inspect}, which must be a number from #{least} to #{most}")
      end
    end
    private_constant :Grant
  end

  # Tells leases that this process is a forked child.
  module LeaseForks
    def _fork = super.tap { |pid| Lease.forked if pid.zero? }
  end
  private_constant :LeaseForks
  Process.singleton_class.prepend(LeaseForks)
end
