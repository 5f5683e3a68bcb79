#!/usr/bin/perl
# Minion by its own library, for the tests of its adapter.
#   perl minion.pl HOST DATABASE WHAT [CALLS]
#     setup     makes the schema and pushes jobs; some are worked, some fail. Each has its name as its first argument
#     hold      registers a worker, takes jobs, says "holding", and stays so
#     drain     works all that is ready
#     api       a JSON list of [job's method, job, argument, ...], ["broadcast", argument, ...] or
#               ["repair", age in seconds of what has ended and goes]
use strict;
use warnings;
use Minion;
use Mojo::JSON qw(decode_json);
use Mojo::Pg;
use POSIX qw(pause);

my ($host, $database, $what, $calls) = @ARGV;
$| = 1;
my $at = $host =~ s{/}{%2F}gr;
my $minion = Minion->new(Pg => "postgresql://postgres\@$at/$database");
$minion->add_task($_ => sub { }) for qw(good bad hold);

my %id;
sub push_job { my ($task, $t, @options) = @_; return $id{$t} = $minion->enqueue($task => [$t], {@options}) }

sub take {
    my ($worker, $t) = @_;
    my $job = $worker->dequeue(0, {id => $id{$t}}) or die "$t was expected";
    return $job;
}

if ($what eq 'setup') {
    my $worker = $minion->worker->register;
    push_job(bad => $_) && take($worker, $_)->fail('no such user 4711') for qw(failed1 failed2 failed3);
    push_job(bad => 'retry1', attempts => 3);
    take($worker, 'retry1')->fail('connection refused');
    push_job(good => 'done1') && take($worker, 'done1')->finish({sent => 1});
    push_job(good => 'done2') && take($worker, 'done2')->finish;
    push_job(good => $_) for qw(ready1 ready2 ready3 ready4);
    push_job(good => 'later1', delay => 7200);
    push_job(good => 'child1', parents => [$id{failed3}]);
    push_job(good => 'child2', parents => [$id{done2}], delay => 7200);
    push_job(hold => $_, priority => 9, queue => 'held') for qw(held1 held2);
    $worker->unregister;
}
elsif ($what eq 'hold') {
    my $worker = $minion->worker->register;
    $worker->dequeue(0, {queues => ['held']}) or die 'nothing to hold' for 1, 2;
    print STDERR "holding\n";
    pause() while 1; # until it is killed
}
elsif ($what eq 'drain') {
    my $worker = $minion->worker->register;
    while (my $job = $worker->dequeue(0, {queues => ['default', 'held']})) { $job->finish }
    $worker->unregister;
}
else {
    for (@{decode_json($calls)}) {
        my ($method, @args) = @$_;
        if ($method eq 'broadcast') { $minion->broadcast(@args) or die "$method: no worker" }
        elsif ($method eq 'repair') { $minion->remove_after(@args)->repair }
        else { my $job = $minion->job(shift @args); $job->$method(@args) or die "$method: refused" }
    }
}
