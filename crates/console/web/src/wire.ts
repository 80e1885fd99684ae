// The shapes of `/admin/v1`, as the server writes them. Only what the console reads.

export type Role = "viewer" | "operator" | "owner";

export type RoomStatus =
  | "scheduled" | "held" | "drawing" | "running"
  | "paused" | "maintenance" | "draining" | "ended";

export interface Me {
  id: string;
  role: Role;
  note: string;
  expires_at: string | null;
}

export interface Wait {
  low_s: number;
  likely_s: number;
  high_s: number;
}

export interface LanePicture {
  lane: number;
  name: string;
  weight: number | null;
  waiting: number;
  joined: number;
  admissions: number;
}

/** Totals since the start, but for what is in flight. */
export interface OriginPicture {
  asked: number;
  bad: number;
  busy: number;
  ms: number;
  in_flight: number;
  origins: number;
  living: number;
}

/** A room's document: known keys are in `settings/keys.ts`, others may come. */
export type Settings = Record<string, unknown>;

export interface Room {
  room: string;
  status: RoomStatus;
  reason: string | null;
  message: string | null;
  version: number;
  waiting: number;
  admitted: number;
  active: number;
  joined: number;
  admissions: number;
  completed: number;
  expired: number;
  left: number;
  revoked: number;
  moved: number;
  closed: number;
  no_shows: number;
  slots_taken: number;
  slots_free: number | null;
  max_active: number | null;
  rate: string | null;
  connected: number;
  wait_of_last: Wait | null;
  wait_unknown_because: string | null;
  store_latency_ms: number | null;
  /** Why nothing can be written at the moment. */
  store_trouble?: string | null;
  /** The site behind the room, where a gate of this server stands before it. */
  origin?: OriginPicture | null;
  lanes: LanePicture[];
  settings: Settings | null;
}

export interface Ticket {
  ticket: string;
  room: string;
  status: string;
  place: { lane: number; order: number } | null;
  position: number | null;
  ahead: number | null;
  behind: number | null;
  wait: Wait | null;
  wait_unknown_because?: string | null;
  support_code: string;
  joined_at?: string;
  admitted_at?: string;
  claim_by?: string;
  expires_at?: string;
  ended_because?: string;
}

export interface AuditEntry {
  index: number;
  at: string;
  who: string;
  action: string;
  room: string | null;
  before: unknown;
  after: unknown;
}

export interface AuditPage {
  entries: AuditEntry[];
  head: number;
  next: number;
  chain?: string;
}

export interface LogEvent {
  index: number;
  at: string;
  event: string;
  [more: string]: unknown;
}

export interface LogPage {
  events: LogEvent[];
  head: number;
  next: number;
  trimmed_to: number;
}

export interface ApiKey {
  id: string;
  role: Role;
  note: string;
  created_at: string;
  created_by: string;
  expires_at: string | null;
  last_used_at: string | null;
  revoked_at: string | null;
  replaced_by: string | null;
}

export interface FreshKey extends ApiKey {
  key: string;
}

export interface Report {
  room: string;
  status: string;
  made_at: string;
  complete: boolean;
  totals: Record<string, number>;
  wait_s: Record<string, number> | null;
  stretch_s: number;
  course: Array<Record<string, number | string>>;
}
