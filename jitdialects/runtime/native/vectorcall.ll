; What a call of a jitted function enters: CPython's vectorcall of the objects of `runtime.callables`.
;
; An object has, after its head, this function's address and that of its *table*; `runtime.call_tables` makes
; tables and says what is in them. A table leads to the *group* of stubs for the call: by its keywords, and for a
; method by its instance. The stubs of a group are tried in order; where there are many, a memo says which was
; entered last for a call that looked like this one. A stub's checks decide, all that leads to it is a hint. Where
; none takes the call, or a capture is running, the table's `slow` is called with the object in front of the arguments.
;
; Tables change under the GIL only. A stub that misses has kept it, so that what was read here is still there;
; after one that did more, of which a result or `refused` tells, nothing is read but the object's own table.

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.readcyclecounter()
declare i64 @llvm.fshl.i64(i64, i64, i64)

; ---- the stubs of a group: gives what the stub gave: null, a result, or 1: refused ---------------

define internal ptr @try_group(ptr %group, ptr %arguments, i64 %count, ptr %array) nounwind {
entry:
  %mask.at = getelementptr i8, ptr %group, i64 16
  %mask = load i64, ptr %mask.at
  %few = icmp eq i64 %mask, 0
  %memo.at = getelementptr i8, ptr %group, i64 24
  %memo = load ptr, ptr %memo.at
  br i1 %few, label %search, label %look

look:
  %hash = call i64 @hash_of(ptr %arguments, i64 %count, ptr %array)
  %high = lshr i64 %hash, 32
  %slot = and i64 %high, %mask
  %offset = shl i64 %slot, 4
  %place = getelementptr i8, ptr %memo, i64 %offset
  %stub.a = load ptr, ptr %place
  %known.a = icmp ne ptr %stub.a, null
  br i1 %known.a, label %enter.a, label %search

enter.a:
  %state.a.at = getelementptr i8, ptr %place, i64 8
  %state.a = load ptr, ptr %state.a.at
  %result.a = call ptr %stub.a(ptr %state.a, ptr %arguments, i64 %count)
  %served.a = icmp ne ptr %result.a, null
  br i1 %served.a, label %done, label %other

other: ; a place has a neighbour, for what it held before
  %offset.b = xor i64 %offset, 16
  %place.b = getelementptr i8, ptr %memo, i64 %offset.b
  %stub.b = load ptr, ptr %place.b
  %state.b.at = getelementptr i8, ptr %place.b, i64 8
  %known.b = icmp ne ptr %stub.b, null
  br i1 %known.b, label %enter.b, label %move

enter.b:
  %state.b = load ptr, ptr %state.b.at
  %result.b = call ptr %stub.b(ptr %state.b, ptr %arguments, i64 %count)
  %served.b = icmp ne ptr %result.b, null
  br i1 %served.b, label %done, label %move

move:
  store ptr %stub.a, ptr %place.b
  store ptr %state.a, ptr %state.b.at
  br label %search

search: ; a stub is noted down before it is entered: it may let the GIL go
  %noted = phi ptr [ %memo, %entry ], [ %place, %look ], [ %place, %move ]
  %noted.state = getelementptr i8, ptr %noted, i64 8
  %stubs = load i64, ptr %group
  %first.at = getelementptr i8, ptr %group, i64 8
  %first = load ptr, ptr %first.at
  br label %next

next:
  %left = phi i64 [ %stubs, %search ], [ %less, %missed ]
  %at = phi ptr [ %first, %search ], [ %following, %missed ]
  %none = icmp eq i64 %left, 0
  br i1 %none, label %nobody, label %try

try:
  %stub = load ptr, ptr %at
  %state.at = getelementptr i8, ptr %at, i64 8
  %state = load ptr, ptr %state.at
  store ptr %stub, ptr %noted
  store ptr %state, ptr %noted.state
  %result = call ptr %stub(ptr %state, ptr %arguments, i64 %count)
  %served = icmp ne ptr %result, null
  br i1 %served, label %done, label %missed

missed:
  %less = sub i64 %left, 1
  %following = getelementptr i8, ptr %at, i64 16
  br label %next

done:
  %answer = phi ptr [ %result.a, %enter.a ], [ %result.b, %enter.b ], [ %result, %try ]
  ret ptr %answer

nobody:
  ret ptr null
}

; How arguments look: their types, and of arrays dtype, rank, contiguity and sizes.
define internal i64 @hash_of(ptr %arguments, i64 %count, ptr %array) nounwind {
entry:
  br label %argument

argument:
  %number = phi i64 [ 0, %entry ], [ %number.next, %mixed ]
  %hash = phi i64 [ %count, %entry ], [ %hash.mixed, %mixed ]
  %ended = icmp eq i64 %number, %count
  br i1 %ended, label %done, label %one

one:
  %value.at = getelementptr ptr, ptr %arguments, i64 %number
  %value = load ptr, ptr %value.at
  %type.at = getelementptr i8, ptr %value, i64 8
  %type = load ptr, ptr %type.at
  %type.number = ptrtoint ptr %type to i64
  %hash.type = call i64 @mix(i64 %hash, i64 %type.number)
  %is.array = icmp eq ptr %type, %array
  br i1 %is.array, label %of.array, label %mixed

of.array:
  %rank.at = getelementptr i8, ptr %value, i64 24
  %rank32 = load i32, ptr %rank.at
  %rank = zext i32 %rank32 to i64
  %descriptor.at = getelementptr i8, ptr %value, i64 56
  %descriptor = load ptr, ptr %descriptor.at
  %kind.at = getelementptr i8, ptr %descriptor, i64 28
  %kind32 = load i32, ptr %kind.at
  %kind = zext i32 %kind32 to i64
  %flags.at = getelementptr i8, ptr %value, i64 64
  %flags32 = load i32, ptr %flags.at
  %flags = zext i32 %flags32 to i64
  %contiguous = and i64 %flags, 1
  %kind.high = shl i64 %kind, 8
  %rank.high = shl i64 %rank, 1
  %word.some = or i64 %kind.high, %rank.high
  %word = or i64 %word.some, %contiguous
  %hash.kind = call i64 @mix(i64 %hash.type, i64 %word)
  %sizes.at = getelementptr i8, ptr %value, i64 32
  %sizes = load ptr, ptr %sizes.at
  br label %axis

axis:
  %axis.number = phi i64 [ 0, %of.array ], [ %axis.next, %size ]
  %hash.axis = phi i64 [ %hash.kind, %of.array ], [ %hash.size, %size ]
  %no.more = icmp eq i64 %axis.number, %rank
  br i1 %no.more, label %mixed, label %size

size:
  %size.at = getelementptr i64, ptr %sizes, i64 %axis.number
  %size.value = load i64, ptr %size.at
  %hash.size = call i64 @mix(i64 %hash.axis, i64 %size.value)
  %axis.next = add i64 %axis.number, 1
  br label %axis

mixed:
  %hash.mixed = phi i64 [ %hash.type, %one ], [ %hash.axis, %axis ]
  %number.next = add i64 %number, 1
  br label %argument

done:
  ret i64 %hash
}

define internal i64 @mix(i64 %hash, i64 %word) nounwind {
  %turned = call i64 @llvm.fshl.i64(i64 %hash, i64 %hash, i64 5)
  %both = xor i64 %turned, %word
  %mixed = mul i64 %both, 5871781006564002453
  ret i64 %mixed
}

; ---- the table of a method's instance, or null -------------------------------------------------

; An entry is an object, its table, and a weak reference to the object, which says whether it still is that one.
define internal ptr @table_of(ptr %instances, i64 %mask, ptr %instance) nounwind {
entry:
  %number = ptrtoint ptr %instance to i64
  %high = lshr i64 %number, 4
  br label %next

next:
  %slot = phi i64 [ %high, %entry ], [ %following, %step ]
  %inside = and i64 %slot, %mask
  %offset = shl i64 %inside, 5
  %at = getelementptr i8, ptr %instances, i64 %offset
  %key = load ptr, ptr %at
  %found = icmp eq ptr %key, %instance
  br i1 %found, label %ask, label %step

step: ; at least one place is empty
  %following = add i64 %slot, 1
  %empty = icmp eq ptr %key, null
  br i1 %empty, label %nobody, label %next

ask:
  %reference.at = getelementptr i8, ptr %at, i64 16
  %reference = load ptr, ptr %reference.at
  %object.at = getelementptr i8, ptr %reference, i64 16
  %object = load ptr, ptr %object.at
  %lives = icmp eq ptr %object, %instance
  br i1 %lives, label %done, label %step

done:
  %table.at = getelementptr i8, ptr %at, i64 8
  %table = load ptr, ptr %table.at
  ret ptr %table

nobody:
  ret ptr null
}

; ---- calls with keywords -----------------------------------------------------------------------

; What `try_group` gives for arguments in the order that the stubs want; null for keywords that are not known.
define internal ptr @try_keywords(ptr %table, ptr %arguments, i64 %count, ptr %names, ptr %array) nounwind {
entry:
  %names.size.at = getelementptr i8, ptr %names, i64 16
  %names.size = load i64, ptr %names.size.at
  %names.first = getelementptr i8, ptr %names, i64 24
  %shapes.at = getelementptr i8, ptr %table, i64 24
  %shapes = load i64, ptr %shapes.at
  %first.at = getelementptr i8, ptr %table, i64 32
  %first = load ptr, ptr %first.at
  br label %next

next:
  %left = phi i64 [ %shapes, %entry ], [ %less, %missed ]
  %at = phi ptr [ %first, %entry ], [ %following, %missed ]
  %none = icmp eq i64 %left, 0
  br i1 %none, label %nobody, label %compare

compare:
  %shape = load ptr, ptr %at
  %shape.count = load i64, ptr %shape
  %shape.size.at = getelementptr i8, ptr %shape, i64 8
  %shape.size = load i64, ptr %shape.size.at
  %same.count = icmp eq i64 %shape.count, %count
  %same.size = icmp eq i64 %shape.size, %names.size
  %same = and i1 %same.count, %same.size
  %known = getelementptr i8, ptr %shape, i64 32
  br i1 %same, label %name, label %missed

name: ; names are interned: the same text is the same object
  %number = phi i64 [ 0, %compare ], [ %number.next, %same.name ]
  %ended = icmp eq i64 %number, %names.size
  br i1 %ended, label %fits, label %one

one:
  %given.at = getelementptr ptr, ptr %names.first, i64 %number
  %given = load ptr, ptr %given.at
  %wanted.at = getelementptr ptr, ptr %known, i64 %number
  %wanted = load ptr, ptr %wanted.at
  %equal = icmp eq ptr %given, %wanted
  br i1 %equal, label %same.name, label %missed

same.name:
  %number.next = add i64 %number, 1
  br label %name

missed:
  %less = sub i64 %left, 1
  %following = getelementptr i8, ptr %at, i64 8
  br label %next

fits:
  %group.at = getelementptr i8, ptr %shape, i64 16
  %group = load ptr, ptr %group.at
  %total = add i64 %count, %names.size
  %in.order.at = getelementptr i8, ptr %shape, i64 24
  %in.order = load i64, ptr %in.order.at
  %ordered = icmp ne i64 %in.order, 0
  br i1 %ordered, label %go, label %order

order:
  %new = alloca ptr, i64 %total
  %places = getelementptr ptr, ptr %known, i64 %names.size
  br label %place

place:
  %to = phi i64 [ 0, %order ], [ %to.next, %put ]
  %placed = icmp eq i64 %to, %total
  br i1 %placed, label %go, label %put

put:
  %from.at = getelementptr i64, ptr %places, i64 %to
  %from = load i64, ptr %from.at
  %value.at = getelementptr ptr, ptr %arguments, i64 %from
  %value = load ptr, ptr %value.at
  %put.at = getelementptr ptr, ptr %new, i64 %to
  store ptr %value, ptr %put.at
  %to.next = add i64 %to, 1
  br label %place

go:
  %values = phi ptr [ %arguments, %fits ], [ %new, %place ]
  %answer = call ptr @try_group(ptr %group, ptr %values, i64 %total, ptr %array)
  ret ptr %answer

nobody:
  ret ptr null
}

; ---- the call ----------------------------------------------------------------------------------

define ptr @jd_vectorcall(ptr %self, ptr %arguments, i64 %flags, ptr %names) nounwind {
entry:
  %own.at = getelementptr i8, ptr %self, i64 24
  %own = load ptr, ptr %own.at
  %environment = load ptr, ptr %own
  %count = and i64 %flags, 9223372036854775807 ; the highest bit lends the word before the arguments
  %busy = load i64, ptr %environment
  %array.at = getelementptr i8, ptr %environment, i64 8
  %array = load ptr, ptr %array.at
  %instances.at = getelementptr i8, ptr %own, i64 48
  %instances = load ptr, ptr %instances.at
  %has.instances = icmp ne ptr %instances, null
  %free = icmp eq i64 %busy, 0
  br i1 %free, label %begin, label %slow

begin:
  %some = icmp ne i64 %count, 0
  %maybe.method = and i1 %has.instances, %some
  br i1 %maybe.method, label %method, label %chosen

method:
  %mask.at = getelementptr i8, ptr %own, i64 40
  %mask = load i64, ptr %mask.at
  %instance = load ptr, ptr %arguments
  %bound = call ptr @table_of(ptr %instances, i64 %mask, ptr %instance)
  %is.bound = icmp ne ptr %bound, null
  %rest.arguments = getelementptr i8, ptr %arguments, i64 8
  %rest.count = sub i64 %count, 1
  %its.table = select i1 %is.bound, ptr %bound, ptr %own
  %its.arguments = select i1 %is.bound, ptr %rest.arguments, ptr %arguments
  %its.count = select i1 %is.bound, i64 %rest.count, i64 %count
  br label %chosen

chosen:
  %table = phi ptr [ %own, %begin ], [ %its.table, %method ]
  %values = phi ptr [ %arguments, %begin ], [ %its.arguments, %method ]
  %number = phi i64 [ %count, %begin ], [ %its.count, %method ]
  %positional = icmp eq ptr %names, null
  br i1 %positional, label %plain, label %by.name

plain:
  %group.at = getelementptr i8, ptr %table, i64 16
  %group = load ptr, ptr %group.at
  %result.plain = call ptr @try_group(ptr %group, ptr %values, i64 %number, ptr %array)
  br label %tried

by.name:
  %result.keywords = call ptr @try_keywords(ptr %table, ptr %values, i64 %number, ptr %names, ptr %array)
  br label %tried

tried:
  %result = phi ptr [ %result.plain, %plain ], [ %result.keywords, %by.name ]
  %result.number = ptrtoint ptr %result to i64
  %served = icmp ugt i64 %result.number, 1
  br i1 %served, label %done, label %slow

done:
  ret ptr %result

slow:
  %has.names = icmp ne ptr %names, null
  br i1 %has.names, label %count.keywords, label %copy

count.keywords: ; the size of a tuple follows its head
  %keywords.at = getelementptr i8, ptr %names, i64 16
  %keywords = load i64, ptr %keywords.at
  br label %copy

copy:
  %more = phi i64 [ 0, %slow ], [ %keywords, %count.keywords ]
  %total = add i64 %count, %more
  %words = add i64 %total, 1
  %few.words = icmp ule i64 %words, 1024 ; `f(*x)` may give a million: too many for the stack of a thread
  br i1 %few.words, label %on.stack, label %on.heap

on.stack:
  %stack = alloca ptr, i64 %words
  br label %room

on.heap:
  %words.bytes = shl i64 %words, 3
  %malloc.at = getelementptr i8, ptr %environment, i64 168
  %malloc = load ptr, ptr %malloc.at
  %heap = call ptr %malloc(i64 %words.bytes)
  %no.heap = icmp eq ptr %heap, null
  br i1 %no.heap, label %no.memory, label %room

no.memory:
  %no.memory.at = getelementptr i8, ptr %environment, i64 200
  %set.error = load ptr, ptr %no.memory.at
  %error = call ptr %set.error()
  ret ptr null

room:
  %new = phi ptr [ %stack, %on.stack ], [ %heap, %on.heap ]
  store ptr %self, ptr %new
  %rest = getelementptr i8, ptr %new, i64 8
  %bytes = mul i64 %total, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %rest, ptr %arguments, i64 %bytes, i1 false)
  %call.at = getelementptr i8, ptr %environment, i64 64
  %call = load ptr, ptr %call.at
  %callee.at = getelementptr i8, ptr %own, i64 8
  %callee = load ptr, ptr %callee.at
  %with.self = add i64 %count, 1
  %answer = call ptr %call(ptr %callee, ptr %new, i64 %with.self, ptr %names)
  br i1 %few.words, label %answered, label %give.back

give.back:
  %free.at = getelementptr i8, ptr %environment, i64 176
  %free.memory = load ptr, ptr %free.at
  call void %free.memory(ptr %new)
  br label %answered

answered:
  ret ptr %answer
}

; The clock of `call_stub`'s samples.
define i64 @jd_cycles() nounwind {
  %now = call i64 @llvm.readcyclecounter()
  ret i64 %now
}
