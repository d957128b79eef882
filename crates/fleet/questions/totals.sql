-- All figures of all runs added up: equal to the sums of their reports
select
  count(distinct service) as services, count(distinct host) as hosts, count(distinct run) as runs, count(*) as rows_in_all,
  sum(cast(calls as decimal(38, 0))) as calls,
  sum(cast(errors as decimal(38, 0))) as errors,
  sum(cast(bytes as decimal(38, 0))) as bytes,
  sum(cast(toll_ns as decimal(38, 0))) as toll_ns,
  sum(cast(waited_ns as decimal(38, 0))) as waited_ns,
  sum(cast(needless_calls as decimal(38, 0))) as needless_calls,
  sum(cast(needless_ns as decimal(38, 0))) as needless_ns
from fleet
