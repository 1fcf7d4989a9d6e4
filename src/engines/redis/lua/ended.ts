/**
 * `ended(q, id, how, detail, isNoted)`: the job will not run, whatever it was doing. Its hash stays to be looked at.
 * `isNoted`: its present start stands in the history already.
 */
export const ENDED = `
ended = function(q, id, how, detail, isNoted)
  takeOut(q, id)
  call('ZREM', q['waiting-children'], id)
  call('ZREM', q.failed, id)
  if call('LREM', q.active, -1, id) > 0 then
    local attempt = attemptsOf(q, id) + 1
    if not isNoted then noteStart(q, id, attempt) end
    note(q, id, how, attempt, call('HGET', q.base .. id, 'pb') or nil, detail)
    call('HINCRBY', q.base .. id, 'atm', 1)
    call('DEL', q.base .. id .. ':lock')
    call('SREM', q.stalled, id)
  else
    note(q, id, how, attemptsOf(q, id), nil, detail)
    -- The times of a start that was over are told by the history, not by a job that was waiting again.
    if how ~= 'discarded' then call('HDEL', q.base .. id, 'processedOn', 'pb') end
  end
  call('HSET', q.base .. id, 'mrEnded', how, 'finishedOn', now, 'mrAt', now)
  call('ZADD', q[':ended'], now, id)
  over(q, id, moreOf(q, id), how ~= 'discarded')
end
`
