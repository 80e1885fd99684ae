// All settings of a room but its schedule.
import { Empty } from "../../parts/bits";
import { Editor } from "../../settings/editor";
import { GROUPS, others } from "../../settings/keys";
import type { Room } from "../../wire";

export function SettingsTab({ room }: { room: Room }) {
  if (!room.settings) return <Empty title="This room has no settings yet."><p>Give it a document with <code>waitroom room put</code>.</p></Empty>;
  const more = others(room.settings);
  return <Editor room={room} groups={more ? [...GROUPS, more] : GROUPS} />;
}
