/** Where the HTTP API listens, apart from the server: the command line checks ports without loading it. */
export const PORT_DEFAULT = 7420
export const HOST_DEFAULT = '127.0.0.1'

export const PORT_MAX = 65_535

export function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 0 && port <= PORT_MAX
}
