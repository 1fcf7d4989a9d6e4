import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'

/** Containers repeat host names and all run as process 1, so a random suffix keeps two workers apart (X116). */
export function newWorkerId(): string {
  return `${hostname()}:${process.pid}:${randomBytes(4).toString('hex')}`
}
