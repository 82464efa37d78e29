# Prints ids, for check_client.py: python3 check_client.py --fork --signals ruby ruby_ids.rb
require_relative '../ruby/firn_lease'

ids = Firn::Lease.new(ARGV[0].split(','), pool: ARGV[1], token: ARGV[2], timeout: 0.5)
said = Queue.new
ended, end_ = IO.pipe # a child cannot read the input too
child = false
source = File.expand_path('../ruby/firn_lease.rb', __dir__)
returns = File.readlines(source).map { |line| line.match?(/return ids|def next/) } # from there on, the program itself would copy its id
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
trap('USR1') do
  at = caller_locations(1, 1).first
  child = true if at.absolute_path == source && !returns[at.lineno - 1] && !child && fork.nil?
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
  sleep 6 if line == 'block'
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
