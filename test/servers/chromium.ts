import { findProgram } from './apt.ts'

export const MISSING = `Chromium is not installed; run 'apt-get install chromium', or set MILLRACE_TEST_CHROMIUM to the path of one`

/** The program of a Chromium: the one that MILLRACE_TEST_CHROMIUM names, or Debian's. */
export function chromiumPath(): string {
  const given = process.env.MILLRACE_TEST_CHROMIUM
  const path = given === undefined || given === '' ? findProgram('chromium', 'chromium') : given
  if (path === null) throw new Error(MISSING)
  return path
}
