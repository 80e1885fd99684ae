(function(){
"use strict";
var box=document.getElementById("live"),root=W.base+"/v1/rooms/"+encodeURIComponent(W.room)+"/",smallest=Infinity,gone=false;
function ask(verb,method){
return fetch(root+verb,{method:method,credentials:"same-origin",cache:"no-store",headers:{"Waitroom-Request":"1",Accept:"application/json"}})
.then(function(r){return r.json().catch(function(){return{}}).then(function(a){a.http=r.status;return a})});
}
function say(lines){
box.textContent="";
lines.forEach(function(line,i){if(!line)return;var p=document.createElement("p");if(!i)p.className="big";p.textContent=line;box.appendChild(p)});
}
function show(a){
var first="You are in line; places are drawn at the start";
if(typeof a.position==="number"){smallest=Math.min(smallest,a.position);first="You are number "+smallest+" in line"}
var w=a.wait,wait="";
if(w){var low=Math.floor(w.low_s/60),high=Math.max(1,Math.ceil(w.high_s/60));wait=low&&low!==high?"It takes "+low+" to "+high+" min":"It takes up to "+high+" min"}
say([first,wait,a.reason,a.support_code?"Support code "+a.support_code:""]);
}
function enter(pass){
gone=true;say(["It is your turn"]);
location.replace(W.to+(W.to.indexOf("?")<0?"?":"&")+"wr_pass="+pass);
}
function later(ms,what){setTimeout(what,Math.max(500,ms||5000))}
function step(a){
if(gone)return;
if(a.code){
if(a.http===410&&a.code==="room_ended"){say([a.title,a.detail]);return later(30000,join)}
if(a.http===401||a.http===404||a.http===410||a.code==="moved_elsewhere"){return join()}
say([a.title,a.detail]);return later(a.retry_after_ms||5000,look);
}
if(a.status==="admitted"||a.status==="active"){
return ask("claim","POST").then(function(c){if(c.pass)enter(c.pass);else if(c.code==="wrong_status"||c.code==="claim_too_late")join();else{say([c.title,c.detail]);later(c.retry_after_ms,look)}},lost);
}
if(a.status==="waiting"){show(a);return later(a.next_check_ms,look)}
if(a.status==="closed"){say(["The sale is over",a.reason]);return later(30000,look)}
join();
}
var joins=0;
function join(){if(++joins>20){say(["Please load this page again"]);return}ask("join","POST").then(step,lost)}
function look(){ask("status","GET").then(step,lost)}
function lost(){say(["The connection was lost","Your place is kept; this page tries again."]);later(5000,look)}
look();
})();
