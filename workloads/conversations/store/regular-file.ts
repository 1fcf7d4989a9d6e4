/** The hook is built from this file too. */
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'

/** Refuses a pipe or a device, of which a read would never end. Throws the errors of node:fs. */
export function readRegularFile(file: string): Buffer {
  // Without O_NONBLOCK, opening a pipe waits for a writer.
  const descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const stat = fstatSync(descriptor)
    if (stat.isFIFO() || stat.isCharacterDevice()) throw Object.assign(new Error('not a file'), { code: 'EINVAL' })
    return readFileSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
