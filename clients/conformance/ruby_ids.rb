# Prints ids, for check_client.py: python3 check_client.py --fork --signals ruby ruby_ids.rb
require_relative '../ruby/firn_lease'

ids = Firn::Lease.new(ARGV[0].split(','), pool: ARGV[1], token: ARGV[2], timeout: 0.5)
said = Queue.new
ended, end_ = IO.pipe # a child cannot read the input too
child = false
source = File.expand_path('../ruby/firn_lease.rb', __dir__)
show = lambda do |&make|
  text = Array(make.call).map { |id| "#{'child ' if child}#{id}\n" }.join
  begin
    $stdout.syswrite(text) # in one piece
  rescue Errno::EINTR
    retry
  end
rescue Firn::LeaseError
  nil # nothing instead of an id
end
trap('CHLD', 'IGNORE')
# A signal mostly arrives while the program writes. So its handler forks some lines later, in a call.
lines = 0
later = TracePoint.new(:line) do |at|
  if at.path == source && %i[take make].include?(at.method_id) && Thread.current == Thread.main && (lines -= 1).negative?
    later.disable
    child = true if fork.nil?
  end
end
trap('USR1') do
  lines = rand(15)
  later.enable unless child
end
trap('USR2') { show.call { ids.next } }
Thread.new do
  while (line = $stdin.gets)
    said << line.chomp
  end
  exit!(0)
end
pause = 0.5
loop do
  line = said.empty? ? '' : said.pop
  if line == 'fork' && fork.nil?
    end_.close
    Thread.new do
      ended.read
      exit!(0)
    end
  end
  sleep 7.5 if line == 'block'
  pause = 0.02 if line == 'busy'
  if line == 'child' && fork.nil?
    10.times { show.call { ids.next } }
    ids.close
    exit
  end
  500.times do
    show.call { ids.next }
    exit!(0) if child
  end
  10.times do
    show.call { ids.take(50) }
    exit!(0) if child
  end
  sleep pause
end
