// Talks to `/admin/v1` of the server that served this page. Every failure is a `Problem`.
import { key, signOut } from "./session";

/** A slow answer is as good as none: the poll of the next second is already due. */
const PATIENCE_MS = 8_000;

export class Problem extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly status = 0,
    readonly fields: Array<{ field: string; problem: string }> = [],
  ) {
    super(message);
  }

  /** What is wrong with a field or a part of it: `lanes` also hears of `lanes[1].weight`. */
  of(name: string): string | undefined {
    const about = this.fields.filter(({ field }) =>
      field === name || field.startsWith(`${name}.`) || field.startsWith(`${name}[`));
    if (!about.length) return undefined;
    return about.map(({ field, problem }) => field === name ? problem : `${field}: ${problem}`).join("; ");
  }
}

export function asProblem(error: unknown): Problem {
  return error instanceof Problem ? error : new Problem("console", String(error));
}

/** With the key of the session; a key that is no longer good ends it. */
export async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await send(key() ?? "", method, path, body);
  return await response.json() as T;
}

export async function download(path: string): Promise<Blob> {
  return await (await send(key() ?? "", "GET", path)).blob();
}

/** With a key that is only being tried. */
export async function askAs<T>(tried: string, path: string): Promise<T> {
  const response = await send(tried, "GET", path);
  return await response.json() as T;
}

async function send(bearer: string, method: string, path: string, body?: unknown): Promise<Response> {
  const headers: Record<string, string> = { Authorization: `Bearer ${bearer}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(`/admin/v1${path}`, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(PATIENCE_MS),
      cache: "no-store",
      credentials: "omit",
    });
  } catch {
    throw new Problem("unreachable", "The server cannot be reached.");
  }
  if (response.ok) return response;
  const problem = await problemOf(response);
  if (response.status === 401 && bearer === key()) signOut("Your key is no longer accepted. Please sign in again.");
  throw problem;
}

async function problemOf(response: Response): Promise<Problem> {
  const told = await response.json().catch(() => null) as
    | { code?: string; title?: string; detail?: string; errors?: Array<{ field: string; problem: string }> }
    | null;
  if (!told?.code) return new Problem("unreachable", `The server answered ${response.status}.`, response.status);
  const text = [told.title, told.detail].filter(Boolean).join(": ");
  return new Problem(told.code, text, response.status, told.errors ?? []);
}

/** A path with its parts escaped: room names and ids are never trusted to be harmless. */
export function path(parts: TemplateStringsArray, ...values: string[]): string {
  return parts.reduce((whole, part, at) => whole + encodeURIComponent(values[at - 1] ?? "") + part);
}
