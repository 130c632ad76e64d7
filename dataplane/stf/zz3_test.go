package stf
import ("testing";"os";"fmt";"time";"math/rand";"encoding/hex";"path/filepath";"strings";"github.com/p4lb/p4lb/bmv2";"github.com/p4lb/p4lb/dataplane")
func TestGenDiff(t *testing.T){
 files,_:=filepath.Glob("/work/ext/out/p4c/*.json")
 r:=rand.New(rand.NewSource(7))
 for _,f:=range files{
  n:=strings.TrimSuffix(filepath.Base(f),".json")
  b,_:=os.ReadFile(f)
  c,err:=bmv2.Load(b); if err!=nil{continue}
  sw,err:=dataplane.New(c,dataplane.Options{}); if err!=nil{t.Log(n,err);continue}
  var out []string
  var seeds [][]byte
  if text,err:=os.ReadFile("/work/ext/p4c/testdata/p4_16_samples/"+n+".stf");err==nil{
   s,err:=Parse(n,string(text)); if err!=nil{continue}
   rr:=&runner{script:s,engine:dataplane.NewEngine(sw),sw:sw,now:time.Second,handles:map[string]dataplane.Handle{}}
   for _,st:=range s.stmts{
     if st.op=="packet"{ d,_:=hex.DecodeString(st.data); seeds=append(seeds,d); continue}
     if st.op=="expect"||st.op=="wait"{continue}
     if err:=rr.do(st);err!=nil{t.Log(n,err)}
   }
   for _,l:=range strings.Split(string(text),"\n"){ w:=strings.ToLower(strings.TrimSpace(l)); if strings.HasPrefix(w,"packet")||strings.HasPrefix(w,"expect")||w==""||w[0]=='#'{continue}; out=append(out,l)}
  }
  e:=dataplane.NewEngine(sw)
  got:=map[uint32][]string{}
  now:=2*time.Second
  for i:=0;i<14;i++{
   var d []byte
   if len(seeds)>0&&i<8{ d=append([]byte{},seeds[r.Intn(len(seeds))]...); if i>2&&len(d)>0{ for k:=0;k<1+r.Intn(4);k++{ d[r.Intn(len(d))]=byte(r.Intn(256))}}; if i>5&&len(d)>2{d=d[:1+r.Intn(len(d)-1)]}
   } else { d=make([]byte,14+r.Intn(100)); r.Read(d); if i%2==0 { for k:=range d { d[k]&=byte(r.Intn(4)) } } ; if i%3==0&&len(d)>34{ copy(d[12:],[]byte{8,0,0x45,0,0,byte(len(d)-14)})} }
   if len(d)==0{continue}
   out=append(out,fmt.Sprintf("packet 0 %X",d))
   now+=time.Millisecond
   for _,o:=range e.Process(0,d,now){ if o.Port<4{got[o.Port]=append(got[o.Port],fmt.Sprintf("expect %d %X$",o.Port,o.Data)); if len(o.Data)==0{got[o.Port][len(got[o.Port])-1]=fmt.Sprintf("expect %d",o.Port)}}}
  }
  for p:=uint32(0);p<4;p++{ out=append(out,got[p]...) }
  os.WriteFile("/tmp/dp/diff/"+n+".stf",[]byte(strings.Join(out,"\n")+"\n"),0644)
 }
}
