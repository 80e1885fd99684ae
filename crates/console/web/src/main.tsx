// Where the console begins.
import { render } from "preact";
import { App } from "./app";
import "./style/theme.css";
import "./style/base.css";
import "./style/parts.css";
import "./style/views.css";

render(<App />, document.getElementById("console") ?? document.body);
