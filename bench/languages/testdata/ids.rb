# Prints ids, each once it is made; forks all the time, and parent and child go on. With "speed": prints how many a second.
require File.expand_path('firn_lease', ARGV[0])

ids = Firn::Lease.new(ARGV[1].split(','), pool: ARGV[2], timeout: 1.0)
if ARGV[3]
  clock = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
  start = clock.call
  n = 0
  n += 1000.times { ids.next } while clock.call < start + 3
  puts n / 3
  ids.close
  exit
end
some = lambda do
  made = [ids.next] + ids.take(20)
  $stdout.syswrite(made.map { |id| "#{id}\n" }.join) # less than 4,096 bytes: in one piece
rescue Firn::LeaseError => e
  warn e.message
ensure
  sleep 0.01
end
ended = false
trap('TERM') { ended = true }
child = nil
n = 0
until ended
  some.call
  if (n += 1) % 600 == 100 && child.nil?
    child = fork do
      160.times { some.call unless ended }
      ids.close
      exit!(0)
    end
  end
  child = nil if child && Process.wait(child, Process::WNOHANG)
end
ids.close
