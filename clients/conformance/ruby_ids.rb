# Prints ids, for check_client.py: python3 check_client.py --fork --signals ruby ruby_ids.rb
require_relative '../ruby/firn_lease'

ids = Firn::Lease.new(ARGV[0].split(','), pool: ARGV[1], token: ARGV[2], timeout: 0.5)
said = Queue.new
ended, end_ = IO.pipe # a child cannot read the input too
child = false
inside = false # a call is on its way: later, the program itself would have copied its id
show = lambda do |&make|
  inside = true
  made = make.call
  inside = false
  $stdout.syswrite(Array(made).map { |id| "#{'child ' if child}#{id}\n" }.join) # in one piece
rescue Firn::LeaseError
  inside = false # nothing instead of an id
end
trap('CHLD', 'IGNORE')
trap('USR1') { child = true if inside && !child && fork.nil? }
trap('USR2') { show.call { ids.next } }
Thread.new do
  while (line = $stdin.gets)
    said << line.chomp
  end
  exit!(0)
end
loop do
  line = said.empty? ? '' : said.pop
  if line == 'fork' && fork.nil?
    end_.close
    Thread.new do
      ended.read
      exit!(0)
    end
  end
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
  sleep 0.5
end
