/** No id can be made: the message says why. */
export declare class LeaseError extends Error {}

export interface LeaseOptions {
  /** Default: 'default'. */
  pool?: string
  token?: string
  /** How long a call waits for an id, in milliseconds. Default: 10,000, and 40,000 while a server is asked for a lease. */
  timeout?: number
}

/** Ids of a leased worker, made in this thread. */
export declare class Lease {
  constructor(servers: readonly string[], options?: LeaseOptions)
  /** Resolves to an id, and waits for one if it must. */
  next(): Promise<bigint>
  /** Resolves to a list of n ids. */
  take(n: number): Promise<bigint[]>
  /** Makes no more ids. Others get the worker when the lease has ended. */
  close(): void
}
