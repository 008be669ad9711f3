; Arrays in blocks of a memory pool, made and given back in machine code: what a call takes whose result the caller keeps.
;
; A pool's *shelf* (`runtime.pool.shelf`) has, per size class, a list of blocks that only these functions touch, and only
; while the GIL is held: the pool's own lists may be half-way through a change by Python whenever machine code
; looks. The pool puts blocks there and takes them back by `jd_shelve`, `jd_unshelve` and `jd_clear_shelf`.
;
;   shelf   words: environment, pool, coarse classes (0 or 1), open (0 or 1), table of block records, left, then lists
;           by class, requests, requested bytes, fresh requests, fresh bytes
;   record  words: address, capacity, count, kind, next, requested, slab, stamp: 1 in a block that nobody had yet
;   lease   an object: count, type, block, shelf. The base of an array, as long as which the block is its own.
;
; A block on the shelf has 1 << 63 for a count. Where the shelf is closed, a lease that goes puts its block into
; the list `left` instead, for the pool's next safe point.

declare i64 @llvm.ctlz.i64(i64, i1)
declare i64 @llvm.smax.i64(i64, i64)

define internal ptr @record_of(ptr %shelf, i64 %block) nounwind {
  %table.at = getelementptr i8, ptr %shelf, i64 32
  %table = load ptr, ptr %table.at
  %offset = shl i64 %block, 6
  %record = getelementptr i8, ptr %table, i64 %offset
  ret ptr %record
}

define internal ptr @list_of(ptr %shelf, i64 %kind) nounwind {
  %lists = getelementptr i8, ptr %shelf, i64 48
  %list = getelementptr i64, ptr %lists, i64 %kind
  ret ptr %list
}

define internal void @add_to(ptr %shelf, i64 %offset, i64 %amount) nounwind {
  %at = getelementptr i8, ptr %shelf, i64 %offset
  %before = load i64, ptr %at
  %after = add i64 %before, %amount
  store i64 %after, ptr %at
  ret void
}

define internal void @link(ptr %list, ptr %record, i64 %block) nounwind {
  %next.at = getelementptr i8, ptr %record, i64 32
  %first = load i64, ptr %list
  store i64 %first, ptr %next.at
  store i64 %block, ptr %list
  ret void
}

; Put a block, which is in no list, on the shelf. `fresh`: nobody had it yet.
define void @jd_shelve(ptr %shelf, i64 %block, i64 %fresh) nounwind {
  %record = call ptr @record_of(ptr %shelf, i64 %block)
  %count.at = getelementptr i8, ptr %record, i64 16
  store i64 -9223372036854775808, ptr %count.at
  %requested.at = getelementptr i8, ptr %record, i64 40
  store i64 0, ptr %requested.at
  %stamp.at = getelementptr i8, ptr %record, i64 56
  store i64 %fresh, ptr %stamp.at
  %kind.at = getelementptr i8, ptr %record, i64 24
  %kind = load i64, ptr %kind.at
  %list = call ptr @list_of(ptr %shelf, i64 %kind)
  call void @link(ptr %list, ptr %record, i64 %block)
  ret void
}

; Take the first block of a list of the shelf; 0 if there is none. Number -1 is the list `left`.
define i64 @jd_unshelve(ptr %shelf, i64 %kind) nounwind {
entry:
  %list = call ptr @list_of(ptr %shelf, i64 %kind)
  %block = load i64, ptr %list
  %none = icmp eq i64 %block, 0
  br i1 %none, label %done, label %take

take:
  %record = call ptr @record_of(ptr %shelf, i64 %block)
  %next.at = getelementptr i8, ptr %record, i64 32
  %next = load i64, ptr %next.at
  store i64 %next, ptr %list
  br label %done

done:
  ret i64 %block
}

; Move all that is on the shelf to the free lists of the pool, words by class; under its lock.
define void @jd_clear_shelf(ptr %shelf, ptr %free) nounwind {
entry:
  br label %class

class:
  %kind = phi i64 [ 0, %entry ], [ %kind, %move ], [ %kind.next, %next ]
  %ended = icmp eq i64 %kind, 12
  br i1 %ended, label %done, label %look

look:
  %block = call i64 @jd_unshelve(ptr %shelf, i64 %kind)
  %none = icmp eq i64 %block, 0
  br i1 %none, label %next, label %move

move:
  %record = call ptr @record_of(ptr %shelf, i64 %block)
  %count.at = getelementptr i8, ptr %record, i64 16
  store i64 0, ptr %count.at
  %stamp.at = getelementptr i8, ptr %record, i64 56
  store i64 0, ptr %stamp.at
  %list = getelementptr i64, ptr %free, i64 %kind
  call void @link(ptr %list, ptr %record, i64 %block)
  br label %class

next:
  %kind.next = add i64 %kind, 1
  br label %class

done:
  ret void
}

; What happens to a lease that nobody holds any more.
define void @jd_lease_goes(ptr %lease) nounwind {
entry:
  %block.at = getelementptr i8, ptr %lease, i64 16
  %block = load i64, ptr %block.at
  %shelf.at = getelementptr i8, ptr %lease, i64 24
  %shelf = load ptr, ptr %shelf.at
  %environment = load ptr, ptr %shelf
  %pool.at = getelementptr i8, ptr %shelf, i64 8
  %pool = load ptr, ptr %pool.at
  %open.at = getelementptr i8, ptr %shelf, i64 24
  %open = load i64, ptr %open.at
  %is.open = icmp ne i64 %open, 0
  br i1 %is.open, label %shelve, label %leave

shelve:
  call void @jd_shelve(ptr %shelf, i64 %block, i64 0)
  br label %free

leave:
  %left = call ptr @list_of(ptr %shelf, i64 -1)
  %record = call ptr @record_of(ptr %shelf, i64 %block)
  call void @link(ptr %left, ptr %record, i64 %block)
  br label %free

free: ; the pool last: it may be what keeps the shelf
  %free.at = getelementptr i8, ptr %environment, i64 176
  %free.object = load ptr, ptr %free.at
  call void %free.object(ptr %lease)
  %pool.count = load i64, ptr %pool
  %pool.less = sub i64 %pool.count, 1
  %last = icmp eq i64 %pool.less, 0
  br i1 %last, label %drop, label %keep

keep:
  store i64 %pool.less, ptr %pool
  ret void

drop:
  %decref.at = getelementptr i8, ptr %environment, i64 72
  %decref = load ptr, ptr %decref.at
  call void %decref(ptr %pool)
  ret void
}

; A new array of `bytes` bytes, or null: without an exception if the shelf is closed or has no block for it, or
; if the pool would give such a request a block of its own; with one if NumPy or Python have no memory.
define ptr @jd_new_array(ptr %shelf, i64 %bytes, ptr %dtype, i32 %rank, ptr %sizes) nounwind {
entry:
  %environment = load ptr, ptr %shelf
  %open.at = getelementptr i8, ptr %shelf, i64 24
  %open = load i64, ptr %open.at
  %is.open = icmp ne i64 %open, 0
  %some = call i64 @llvm.smax.i64(i64 %bytes, i64 1)
  %last = sub i64 %some, 1
  %zeros = call i64 @llvm.ctlz.i64(i64 %last, i1 false)
  %bits = sub i64 64, %zeros
  %above = sub i64 %bits, 6
  %fine = call i64 @llvm.smax.i64(i64 %above, i64 0)
  %coarse.at = getelementptr i8, ptr %shelf, i64 16
  %coarse = load i64, ptr %coarse.at
  %odd = and i64 %fine, %coarse
  %kind = add i64 %fine, %odd
  %small = icmp ult i64 %kind, 12 ; larger blocks are mapped one by one
  %may = and i1 %is.open, %small
  br i1 %may, label %class, label %nothing

class: ; as `kind_of` of the pool
  %power = add i64 %kind, 6
  %capacity = shl i64 1, %power
  %spare = sub i64 %capacity, %bytes
  %spare.four = shl i64 %spare, 2
  %much = icmp ugt i64 %spare.four, %capacity
  %upper = add i64 %last, 4096
  %pages = and i64 %upper, -4096
  %saves = icmp ult i64 %pages, %capacity
  %wasteful = and i1 %much, %saves
  %list = call ptr @list_of(ptr %shelf, i64 %kind)
  %block = load i64, ptr %list
  %none = icmp eq i64 %block, 0
  %not = or i1 %wasteful, %none
  br i1 %not, label %nothing, label %make

make:
  %malloc.at = getelementptr i8, ptr %environment, i64 168
  %malloc = load ptr, ptr %malloc.at
  %lease = call ptr %malloc(i64 32)
  %no.lease = icmp eq ptr %lease, null
  br i1 %no.lease, label %nothing, label %wrap

wrap: ; flags: C-contiguous, aligned, writeable
  %record = call ptr @record_of(ptr %shelf, i64 %block)
  %address = load ptr, ptr %record
  %incref.at = getelementptr i8, ptr %environment, i64 184
  %incref = load ptr, ptr %incref.at
  call void %incref(ptr %dtype)
  %array.at = getelementptr i8, ptr %environment, i64 8
  %array.type = load ptr, ptr %array.at
  %new.at = getelementptr i8, ptr %environment, i64 152
  %new = load ptr, ptr %new.at
  %array = call ptr %new(ptr %array.type, ptr %dtype, i32 %rank, ptr %sizes, ptr null, ptr %address, i32 1281, ptr null)
  %no.array = icmp eq ptr %array, null
  br i1 %no.array, label %drop, label %give

drop:
  %free.at = getelementptr i8, ptr %environment, i64 176
  %free.object = load ptr, ptr %free.at
  call void %free.object(ptr %lease)
  ret ptr null

give:
  %next.at = getelementptr i8, ptr %record, i64 32
  %next = load i64, ptr %next.at
  store i64 %next, ptr %list
  %count.at = getelementptr i8, ptr %record, i64 16
  store i64 1, ptr %count.at
  %requested.at = getelementptr i8, ptr %record, i64 40
  store i64 %bytes, ptr %requested.at
  %stamp.at = getelementptr i8, ptr %record, i64 56
  %fresh = load i64, ptr %stamp.at
  store i64 0, ptr %stamp.at
  call void @add_to(ptr %shelf, i64 216, i64 1)
  call void @add_to(ptr %shelf, i64 224, i64 %bytes)
  call void @add_to(ptr %shelf, i64 232, i64 %fresh)
  %fresh.bytes = mul i64 %fresh, %bytes
  call void @add_to(ptr %shelf, i64 240, i64 %fresh.bytes)
  store i64 1, ptr %lease
  %type.at = getelementptr i8, ptr %lease, i64 8
  %lease.type.at = getelementptr i8, ptr %environment, i64 160
  %lease.type = load ptr, ptr %lease.type.at
  store ptr %lease.type, ptr %type.at
  %lease.block.at = getelementptr i8, ptr %lease, i64 16
  store i64 %block, ptr %lease.block.at
  %lease.shelf.at = getelementptr i8, ptr %lease, i64 24
  store ptr %shelf, ptr %lease.shelf.at
  %pool.at = getelementptr i8, ptr %shelf, i64 8
  %pool = load ptr, ptr %pool.at
  %pool.count = load i64, ptr %pool ; a pool is no immortal object
  %pool.more = add i64 %pool.count, 1
  store i64 %pool.more, ptr %pool
  %base.at = getelementptr i8, ptr %array, i64 48
  store ptr %lease, ptr %base.at
  ret ptr %array

nothing:
  ret ptr null
}
