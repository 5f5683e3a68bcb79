# The calls of queuetop-engine(7) through Ruby's pg, which sends all parameters as text and gives none a type:
#   ruby calls.rb HOST DATABASE PAGE
require 'json'
require 'pg'

host, database, page = ARGV
text = File.read(page, encoding: 'UTF-8').split('<!-- calls -->')[1].split('<!-- /calls -->')[0]
CALLS = text.scan(/^-- (\w+):[^\n]*\n([^;]*);$/).to_h
USED = []
ARRAY = PG::TextEncoder::Array.new
BYTES = PG::TextEncoder::Array.new(elements_type: PG::TextEncoder::Bytea.new)

open_one = lambda do
  c = PG.connect(host: host, dbname: database, user: 'postgres')
  c.type_map_for_results = PG::BasicTypeMapForResults.new(c)
  c
end
worker = open_one.call
pusher = open_one.call

run = lambda do |conn, name, *values|
  USED << name
  conn.exec_params(CALLS.fetch(name), values.map { |v| v.is_a?(Array) ? ARRAY.encode(v) : v }).to_a
end
value = ->(name, *values) { run.call(worker, name, *values)[0].values[0] }
equal = ->(got, wanted) { raise "#{got.inspect} is not #{wanted.inspect}" unless got == wanted }
claim = lambda do |n|
  jobs = []
  jobs += run.call(worker, 'claim', 'n', n - jobs.size, '60 s') while jobs.size < n
  jobs
end
arrays = ->(*jobs) { %w[lease version seq].map { |k| jobs.map { |j| j[k] } } }
push = ->(payload) { run.call(pusher, 'push', 'mail', payload)[0]['id'] }

# push
one = push.call('{"to": 1}')
two = run.call(pusher, 'insert', 'mail', '{"to": 2}')[0]['id']
equal.call(2.times.map { run.call(pusher, 'push_later', 'mail', '{"to": 3}', 'u', '5 min')[0]['pushed'] }, [true, false])
many = run.call(pusher, 'push_many', '{mail,mail}', '{4,5}', '{5 min,6 min}')
equal.call(many.map { |j| [j['n'], j['pushed']] }, [[1, true], [2, true]])
equal.call(run.call(pusher, 'outcome', one)[0]['state'], 'ready')

# work
session = '00000000-0000-0000-0000-000000000001'
run.call(worker, 'start', 'n', session, 'h', 1, '1', 4)
equal.call(value.call('beat', 'n', session), 'up')
a, b = claim.call(2)
equal.call([a['id'], JSON.parse(a['payload'].is_a?(String) ? a['payload'] : JSON.dump(a['payload'])), b['id'], b['try']],
           [one, { 'to' => 1 }, two, 1])
raise 'no time' unless value.call('extend_lease', 'n', a['lease'], a['version'], '5 min') > Time.now
equal.call(run.call(worker, 'extend', 'n', [b['lease']], [b['version']], '5 min')[0]['outcome'], 'extended')
equal.call(value.call('complete_job', 'n', a['lease'], a['version'], a['seq'], 'sent'), 'done')
equal.call(run.call(worker, 'complete', 'n', *arrays.call(b), BYTES.encode(["\xff".b]))[0]['outcome'], 'done')
first, second = [one, two].map { |id| run.call(pusher, 'outcome', id)[0] }
equal.call([first['state'], first['result_text'], second['result'], second['result_text']],
           ['completed', 'sent', "\xff".b, nil])

# fail, give back
[4, 5, 6].each { |to| push.call(JSON.dump({ to: to })) }
c, d, e = claim.call(3)
equal.call(value.call('fail_job', 'n', c['lease'], c['version'], c['seq'], 'no'), 'retry')
equal.call(run.call(worker, 'fail', 'n', *arrays.call(d), ['never'], [nil], [true])[0]['outcome'], 'failed')
equal.call(run.call(pusher, 'outcome', d['id'])[0]['error'], 'never')
equal.call(run.call(worker, 'give_back', 'n', *arrays.call(e))[0]['outcome'], 'given back')
equal.call(value.call('complete_job', 'n', c['lease'], c['version'] + 9, c['seq'], nil), 'lost')

# wait: a push wakes the worker
slot = -1
woken = nil
until woken
  row = run.call(worker, 'claim_or_wait', 'n', 1, '60 s', worker.backend_pid, slot)[0]
  slot = row['slot']
  if row['lease']
    equal.call(value.call('complete_job', 'n', row['lease'], row['version'], row['seq'], 'ok'), 'done')
  elsif slot >= 0 && row['wait_ms'] > 0
    push.call('{"to": 7}')
    raise 'no notification in 300 s' unless (woken = worker.wait_for_notify(300))
  end
end
run.call(worker, 'stop', 'n', session)
equal.call(USED.uniq.sort, CALLS.keys.sort)
