; The thread pool that parallel loops of compiled code run on: `jd_parallel_for`, and what a fork needs.
;
; LLVM text, compiled by the same code generation as every kernel, because no Python may be in here: a worker
; holds no GIL, claims with atomic operations and sleeps in the kernel. The library is never unloaded, since
; threads live in it.
;
; One region at a time. Its chunks are claimed one by one from `@work`, which holds the region's number in its
; upper half and the chunks that nobody has claimed in its lower. A thread reads `@work`, then the fields of
; the region, then decrements `@work` if it is unchanged: the fields were those of this region then, because
; they are written only when all chunks of the region before are done. The caller takes part; it waits for
; chunks that others have claimed, never for a thread that has not begun. A region that meets another
; (nested, or of another Python thread) runs in its caller alone.
;
; On a busy machine a helper can lose its core in the middle of a chunk, for milliseconds, and the caller must
; wait for it. A region that waited much longer than a chunk takes, or woke helpers that then did nothing,
; doubles `@pause`, the time for which regions then run alone; each other one takes a sixteenth off. So it costs
; a few percent there, not half.
;
; A helper spins for a while after it had work and then sleeps. To wake it costs the caller 2 to 8 us, so the
; caller does that if the region will take it longer than that pays. What its body took the last time says so
; before the first chunk, or else the first chunk does: one of few chunks is a good part of the region.

%known = type { i64, i64 } ; body, cycles that it took for 256 indices

%region = type { ptr, ptr, i64, i64, i64, i64, i64 } ; body, environment, lower, upper, chunk, chunks, helpers

@work = internal global i64 0, align 64
@done = internal global i32 0, align 64
@current = internal global %region zeroinitializer, align 64
@busy = internal global i32 0, align 64
@sleepers = internal global i32 0, align 64
@waiting = internal global i32 0, align 64
@started = internal global i64 0, align 64
@pause = internal global i64 0, align 64 ; cycles
@alone.until = internal global i64 0, align 64
@last.end = internal global i64 0, align 64
@memory = internal global [16 x %known] zeroinitializer, align 64 ; by the hash of the body; only who is @busy looks
@control = internal constant i32 8064 ; rounding to nearest, subnormals kept, exceptions masked (0x1F80)
@every_signal = internal constant [16 x i64] [i64 -1, i64 -1, i64 -1, i64 -1, i64 -1, i64 -1, i64 -1, i64 -1,
                                              i64 -1, i64 -1, i64 -1, i64 -1, i64 -1, i64 -1, i64 -1, i64 -1]

declare void @llvm.x86.sse2.pause()
declare void @llvm.x86.sse.ldmxcsr(ptr)
declare i64 @llvm.readcyclecounter()
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @syscall(i64, ...)
declare i32 @sched_yield()
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_sigmask(i32, ptr, ptr)

; Sleep while the word at `%at` is `%value`; may return early.
define internal void @sleep(ptr %at, i32 %value) {
  %r = call i64 (i64, ...) @syscall(i64 202, ptr %at, i64 128, i32 %value, ptr null, ptr null, i32 0)
  ret void
}

define internal void @wake(ptr %at, i32 %threads) {
  %r = call i64 (i64, ...) @syscall(i64 202, ptr %at, i64 129, i32 %threads, ptr null, ptr null, i32 0)
  ret void
}

; Wait a moment: %spent cycles of waiting have passed. After 4 us let others have the core, who may be those that
; this thread waits for.
define internal void @relax(i64 %spent) {
enter:
  %short = icmp ult i64 %spent, 10000
  br i1 %short, label %pause, label %yield
pause:
  call void @llvm.x86.sse2.pause()
  ret void
yield:
  %r = call i32 @sched_yield()
  ret void
}

; Run at most %most chunks of the current region; how many. %id counts the helpers; the caller is -1.
define internal i64 @take_part(i64 %id, i64 %most) {
start:
  br label %look
look:
  %ran = phi i64 [ 0, %start ], [ %ran, %fields ], [ %ran1, %run ], [ %ran1, %tell ], [ %ran1, %rouse ]
  %enough = icmp uge i64 %ran, %most
  br i1 %enough, label %out, label %see
see:
  %w = load atomic i64, ptr @work seq_cst, align 8
  %left = and i64 %w, 4294967295
  %none = icmp eq i64 %left, 0
  br i1 %none, label %out, label %read
read:
  %helpers.at = getelementptr %region, ptr @current, i64 0, i32 6
  %helpers = load atomic i64, ptr %helpers.at monotonic, align 8
  %mine = icmp slt i64 %id, %helpers
  br i1 %mine, label %fields, label %out
fields:
  %body = load atomic ptr, ptr @current monotonic, align 8
  %env.at = getelementptr %region, ptr @current, i64 0, i32 1
  %env = load atomic ptr, ptr %env.at monotonic, align 8
  %lower.at = getelementptr %region, ptr @current, i64 0, i32 2
  %lower = load atomic i64, ptr %lower.at monotonic, align 8
  %upper.at = getelementptr %region, ptr @current, i64 0, i32 3
  %upper = load atomic i64, ptr %upper.at monotonic, align 8
  %chunk.at = getelementptr %region, ptr @current, i64 0, i32 4
  %chunk = load atomic i64, ptr %chunk.at monotonic, align 8
  %chunks.at = getelementptr %region, ptr @current, i64 0, i32 5
  %chunks = load atomic i64, ptr %chunks.at monotonic, align 8
  %less = sub i64 %w, 1
  %claim = cmpxchg ptr @work, i64 %w, i64 %less seq_cst seq_cst
  %claimed = extractvalue { i64, i1 } %claim, 1
  br i1 %claimed, label %run, label %look
run:
  %number = sub i64 %chunks, %left
  %before = mul i64 %number, %chunk
  %begin = add i64 %lower, %before
  %rest = sub i64 %upper, %begin
  %size = call i64 @llvm.umin.i64(i64 %rest, i64 %chunk)
  %end = add i64 %begin, %size
  call void %body(ptr %env, i64 %begin, i64 %end)
  %ran1 = add i64 %ran, 1
  %previous = atomicrmw add ptr @done, i32 1 seq_cst
  %now = add i32 %previous, 1
  %all = trunc i64 %chunks to i32
  %last = icmp eq i32 %now, %all
  br i1 %last, label %tell, label %look
tell:
  %asleep = load atomic i32, ptr @waiting seq_cst, align 4
  %call = icmp ne i32 %asleep, 0
  br i1 %call, label %rouse, label %look
rouse:
  call void @wake(ptr @done, i32 1)
  br label %look
out:
  ret i64 %ran
}

; The life of helper %argument. It spins for about 30 us after it had work, then sleeps.
define internal ptr @help(ptr %argument) {
start:
  %id = ptrtoint ptr %argument to i64
  call void @llvm.x86.sse.ldmxcsr(ptr @control)
  %number.at = getelementptr i8, ptr @work, i64 4
  br label %again
again:
  %seen = load atomic i32, ptr %number.at seq_cst, align 4
  %ran = call i64 @take_part(i64 %id, i64 -1)
  %since = call i64 @llvm.readcyclecounter()
  br label %spin
spin:
  %number = load atomic i32, ptr %number.at seq_cst, align 4
  %new = icmp ne i32 %number, %seen
  br i1 %new, label %again, label %idle
idle:
  %time = call i64 @llvm.readcyclecounter()
  %spent = sub i64 %time, %since
  call void @relax(i64 %spent)
  %more = icmp ult i64 %spent, 100000
  br i1 %more, label %spin, label %rest
rest:
  %s0 = atomicrmw add ptr @sleepers, i32 1 seq_cst
  call void @sleep(ptr %number.at, i32 %seen)
  %s1 = atomicrmw sub ptr @sleepers, i32 1 seq_cst
  br label %again
}

; Start helpers until there are %wanted, as far as the system allows. Signals stay with Python's threads.
define internal void @start(i64 %wanted) {
enter:
  %thread = alloca i64, align 8
  %mask = alloca [16 x i64], align 8
  %have = load i64, ptr @started, align 8
  %enough = icmp sge i64 %have, %wanted
  br i1 %enough, label %out, label %block
block:
  %m0 = call i32 @pthread_sigmask(i32 2, ptr @every_signal, ptr %mask)
  br label %each
each:
  %id = phi i64 [ %have, %block ], [ %next, %made ]
  %argument = inttoptr i64 %id to ptr
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr @help, ptr %argument)
  %ok = icmp eq i32 %failed, 0
  br i1 %ok, label %made, label %unblock
made:
  %name = load i64, ptr %thread, align 8
  %d = call i32 @pthread_detach(i64 %name)
  %next = add i64 %id, 1
  store i64 %next, ptr @started, align 8
  %more = icmp slt i64 %next, %wanted
  br i1 %more, label %each, label %unblock
unblock:
  %m1 = call i32 @pthread_sigmask(i32 2, ptr %mask, ptr null)
  br label %out
out:
  ret void
}

; body(env, begin, end) for ranges that make up [lower, upper): multiples of %chunk from %lower on, in any
; order and at the same time, on as many threads as the context says. %chunk is positive.
define void @jd_parallel_for(ptr %context, ptr %body, ptr %env, i64 %lower, i64 %upper, i64 %chunk) {
enter:
  %threads = load i64, ptr %context, align 8
  %many = icmp sgt i64 %threads, 1
  %some = icmp slt i64 %lower, %upper
  %both = and i1 %many, %some
  br i1 %both, label %count, label %alone
count: ; at most 16 chunks for each thread: claims cost
  %extent = sub i64 %upper, %lower
  %e1 = sub i64 %extent, 1
  %q0 = udiv i64 %e1, %chunk
  %pieces = add i64 %q0, 1
  %most = shl i64 %threads, 4
  %p1 = sub i64 %pieces, 1
  %q1 = udiv i64 %p1, %most
  %fold = add i64 %q1, 1
  %size = mul i64 %chunk, %fold
  %q2 = udiv i64 %e1, %size
  %chunks = add i64 %q2, 1
  %two = icmp ugt i64 %chunks, 1
  %begun = call i64 @llvm.readcyclecounter()
  %until = load atomic i64, ptr @alone.until monotonic, align 8
  %paused = icmp slt i64 %begun, %until
  %calm = xor i1 %paused, true
  %go = and i1 %two, %calm
  br i1 %go, label %enter.region, label %alone
enter.region:
  %c = cmpxchg ptr @busy, i32 0, i32 1 seq_cst seq_cst
  %free = extractvalue { i32, i1 } %c, 1
  br i1 %free, label %publish, label %alone
publish:
  %helpers = sub i64 %threads, 1
  call void @start(i64 %helpers)
  store atomic ptr %body, ptr @current monotonic, align 8
  %env.at = getelementptr %region, ptr @current, i64 0, i32 1
  store atomic ptr %env, ptr %env.at monotonic, align 8
  %lower.at = getelementptr %region, ptr @current, i64 0, i32 2
  store atomic i64 %lower, ptr %lower.at monotonic, align 8
  %upper.at = getelementptr %region, ptr @current, i64 0, i32 3
  store atomic i64 %upper, ptr %upper.at monotonic, align 8
  %chunk.at = getelementptr %region, ptr @current, i64 0, i32 4
  store atomic i64 %size, ptr %chunk.at monotonic, align 8
  %chunks.at = getelementptr %region, ptr @current, i64 0, i32 5
  store atomic i64 %chunks, ptr %chunks.at monotonic, align 8
  %helpers.at = getelementptr %region, ptr @current, i64 0, i32 6
  store atomic i64 %helpers, ptr %helpers.at monotonic, align 8
  store atomic i32 0, ptr @done seq_cst, align 4
  %w = load atomic i64, ptr @work seq_cst, align 8
  %old = and i64 %w, -4294967296
  %new = add i64 %old, 4294967296
  %open = or i64 %new, %chunks
  %x = atomicrmw xchg ptr @work, i64 %open seq_cst
  ; 40 us of work are worth it, or 10 where regions follow one another: then helpers stay awake
  %last = load atomic i64, ptr @last.end monotonic, align 8
  %since.last = sub i64 %begun, %last
  %often = icmp ult i64 %since.last, 100000
  %worth = select i1 %often, i64 25000, i64 100000
  %others = sub i64 %chunks, 1
  %name = ptrtoint ptr %body to i64
  %mixed = mul i64 %name, -7046029254386353131
  %slot = lshr i64 %mixed, 60
  %known.at = getelementptr [16 x %known], ptr @memory, i64 0, i64 %slot
  %rate.at = getelementptr %known, ptr %known.at, i64 0, i32 1
  %known = load i64, ptr %known.at, align 8
  %rate = load i64, ptr %rate.at, align 8
  %same = icmp eq i64 %known, %name
  %e256 = mul i64 %rate, %extent
  %expected = lshr i64 %e256, 8
  %long = icmp ugt i64 %expected, %worth
  %expect.long = and i1 %same, %long
  %asleep0 = load atomic i32, ptr @sleepers seq_cst, align 4
  %anybody0 = icmp ne i32 %asleep0, 0
  %at.once = and i1 %expect.long, %anybody0
  br i1 %at.once, label %rouse, label %begin
begin:
  %first = call i64 @take_part(i64 -1, i64 1)
  %asleep = load atomic i32, ptr @sleepers seq_cst, align 4
  %anybody = icmp ne i32 %asleep, 0
  br i1 %anybody, label %weigh, label %work.too
weigh:
  %one = call i64 @llvm.readcyclecounter()
  %took = sub i64 %one, %begun
  %left = mul i64 %took, %others
  %call = icmp ugt i64 %left, %worth
  br i1 %call, label %rouse, label %work.too
rouse: ; some that wake may have to stay out of it: then all
  %ran0 = phi i64 [ 0, %publish ], [ %first, %weigh ]
  %started = load i64, ptr @started, align 8
  %extra = icmp sgt i64 %started, %helpers
  %n = trunc i64 %others to i32
  %number = select i1 %extra, i32 2147483647, i32 %n
  %number.at = getelementptr i8, ptr @work, i64 4
  call void @wake(ptr %number.at, i32 %number)
  br label %work.too
work.too:
  %before = phi i64 [ %first, %begin ], [ %first, %weigh ], [ %ran0, %rouse ]
  %roused = phi i1 [ false, %begin ], [ false, %weigh ], [ true, %rouse ]
  %further = call i64 @take_part(i64 -1, i64 -1)
  %ran = add i64 %before, %further
  %all = trunc i64 %chunks to i32
  %since = call i64 @llvm.readcyclecounter()
  br label %spin
spin:
  %d0 = load atomic i32, ptr @done seq_cst, align 4
  %e0 = icmp eq i32 %d0, %all
  br i1 %e0, label %finish, label %pause
pause:
  %time = call i64 @llvm.readcyclecounter()
  %spent = sub i64 %time, %since
  call void @relax(i64 %spent)
  %more = icmp ult i64 %spent, 100000
  br i1 %more, label %spin, label %rest
rest:
  store atomic i32 1, ptr @waiting seq_cst, align 4
  %d1 = load atomic i32, ptr @done seq_cst, align 4
  %e1.all = icmp eq i32 %d1, %all
  br i1 %e1.all, label %finish, label %doze
doze:
  call void @sleep(ptr @done, i32 %d1)
  br label %rest
finish:
  store atomic i32 0, ptr @waiting seq_cst, align 4
  %ended = call i64 @llvm.readcyclecounter()
  %waited = sub i64 %ended, %since
  %worked = sub i64 %since, %begun
  %some.ran = call i64 @llvm.umax.i64(i64 %ran, i64 1)
  %typical = udiv i64 %worked, %some.ran
  %t256 = shl i64 %typical, 8
  %rate.new = udiv i64 %t256, %size
  store i64 %name, ptr %known.at, align 8
  store i64 %rate.new, ptr %rate.at, align 8
  %four = shl i64 %typical, 2
  %patience = add i64 %four, 200000
  %late = icmp ugt i64 %waited, %patience
  %no.help = icmp eq i64 %ran, %chunks
  %in.vain = and i1 %roused, %no.help
  %busy.machine = or i1 %late, %in.vain
  %pause.now = load atomic i64, ptr @pause monotonic, align 8
  br i1 %busy.machine, label %longer, label %shorter
longer: ; twice what it was, at least 48 million cycles (2 million after a call in vain), at most 512 million
  %double = shl i64 %pause.now, 1
  %start.with = select i1 %late, i64 50331648, i64 2097152
  %least = call i64 @llvm.umax.i64(i64 %double, i64 %start.with)
  %longest = call i64 @llvm.umin.i64(i64 %least, i64 536870912)
  %next.region = add i64 %ended, %longest
  store atomic i64 %next.region, ptr @alone.until monotonic, align 8
  br label %leave
shorter:
  %sixteenth = lshr i64 %pause.now, 4
  %decayed = sub i64 %pause.now, %sixteenth
  br label %leave
leave:
  %pause.next = phi i64 [ %longest, %longer ], [ %decayed, %shorter ]
  store atomic i64 %pause.next, ptr @pause monotonic, align 8
  store atomic i64 %ended, ptr @last.end monotonic, align 8
  store atomic i32 0, ptr @busy seq_cst, align 4
  ret void
alone:
  call void %body(ptr %env, i64 %lower, i64 %upper)
  ret void
}

; In the child of a fork: the helpers stayed in the parent, and so did a region of another thread.
define void @jd_after_fork() {
  %w = load i64, ptr @work, align 8
  %closed = and i64 %w, -4294967296
  store i64 %closed, ptr @work, align 8
  store i32 0, ptr @done, align 4
  store i32 0, ptr @busy, align 4
  store i32 0, ptr @sleepers, align 4
  store i32 0, ptr @waiting, align 4
  store i64 0, ptr @started, align 8
  store i64 0, ptr @pause, align 8
  store i64 0, ptr @alone.until, align 8
  ret void
}

; Helpers that were started.
define i64 @jd_helpers() {
  %n = load i64, ptr @started, align 8
  ret i64 %n
}
