; What a call of a jitted function enters: CPython's vectorcall of the objects of `runtime.callables`.
;
; An object has, after its head, this function's address and that of its table, an array of words: the
; environment of `call_stub`, the number of stubs, then for each its function and its state. The stubs are
; tried in order. Where none takes the call, or there are keywords, or a capture is running, the
; environment's `slow` is called with the object in front of the arguments. The object, its table and what
; that names are kept alive by the object.

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.readcyclecounter()

define ptr @jd_vectorcall(ptr %self, ptr %arguments, i64 %flags, ptr %names) nounwind {
entry:
  %table.at = getelementptr i8, ptr %self, i64 24
  %table = load ptr, ptr %table.at
  %environment = load ptr, ptr %table
  %count = and i64 %flags, 9223372036854775807 ; the highest bit lends the word before the arguments
  %busy = load i64, ptr %environment
  %free = icmp eq i64 %busy, 0
  %positional = icmp eq ptr %names, null
  %plain = and i1 %free, %positional
  br i1 %plain, label %begin, label %slow

begin:
  %stubs.at = getelementptr i8, ptr %table, i64 8
  %stubs = load i64, ptr %stubs.at
  %first = getelementptr i8, ptr %table, i64 16
  br label %next

next:
  %left = phi i64 [ %stubs, %begin ], [ %less, %missed ]
  %at = phi ptr [ %first, %begin ], [ %following, %missed ]
  %none = icmp eq i64 %left, 0
  br i1 %none, label %slow, label %try

try:
  %stub = load ptr, ptr %at
  %state.at = getelementptr i8, ptr %at, i64 8
  %state = load ptr, ptr %state.at
  %result = call ptr %stub(ptr %state, ptr %arguments, i64 %count)
  %served = icmp ne ptr %result, null
  br i1 %served, label %done, label %missed

missed:
  %less = sub i64 %left, 1
  %following = getelementptr i8, ptr %at, i64 16
  br label %next

done:
  ret ptr %result

slow:
  br i1 %positional, label %copy, label %count.keywords

count.keywords: ; the size of a tuple follows its head
  %keywords.at = getelementptr i8, ptr %names, i64 16
  %keywords = load i64, ptr %keywords.at
  br label %copy

copy:
  %more = phi i64 [ 0, %slow ], [ %keywords, %count.keywords ]
  %total = add i64 %count, %more
  %words = add i64 %total, 1
  %new = alloca ptr, i64 %words
  store ptr %self, ptr %new
  %rest = getelementptr i8, ptr %new, i64 8
  %bytes = mul i64 %total, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %rest, ptr %arguments, i64 %bytes, i1 false)
  %call.at = getelementptr i8, ptr %environment, i64 64
  %call = load ptr, ptr %call.at
  %callee.at = getelementptr i8, ptr %environment, i64 152
  %callee = load ptr, ptr %callee.at
  %with.self = add i64 %count, 1
  %answer = call ptr %call(ptr %callee, ptr %new, i64 %with.self, ptr %names)
  ret ptr %answer
}

; The clock of `call_stub`'s samples.
define i64 @jd_cycles() nounwind {
  %now = call i64 @llvm.readcyclecounter()
  ret i64 %now
}
