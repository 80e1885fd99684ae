// An address that leads nowhere.
import { Empty } from "../parts/bits";
import { to } from "../route";

export function LostView() {
  return (
    <>
      <h1>Nothing here</h1>
      <Empty title="This address leads to no view of the console."><a class="button" href={to.rooms}>All rooms</a></Empty>
    </>
  );
}
