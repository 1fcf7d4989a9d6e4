import { compose, GOES_ON_WHEN_FULL } from '../scripts.ts'

/**
 * A claim is recorded when the script runs; its handlers start when the answer has arrived. The window of a rate limit
 * counts from the starts. ARGV: time, then for each claim of a limited type: queue, token.
 */
export const moveStartsScript = compose(
  'move-starts',
  {},
  GOES_ON_WHEN_FULL,
  `
for at = 2, #ARGV, 2 do call('ZADD', queueOf(ARGV[at])[':rate'], 'XX', now, ARGV[at + 1]) end
return 1
`,
)
