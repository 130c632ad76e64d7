package stf
import ("testing";"os";"path/filepath";"strings";"github.com/p4lb/p4lb/bmv2")
func TestZZ(t *testing.T){
 files,_:=filepath.Glob("/work/ext/p4c/testdata/p4_16_samples/*.stf")
 pass,fail,none:=0,0,0
 for _,f:=range files{
  n:=strings.TrimSuffix(filepath.Base(f),".stf")
  b,err:=os.ReadFile("/work/ext/out/p4c/"+n+".json")
  if err!=nil{none++;continue}
  c,err:=bmv2.Load(b)
  if err!=nil{t.Logf("%s LOAD %v",n,err);fail++;continue}
  text,_:=os.ReadFile(f)
  if err:=Run(c,string(text));err!=nil{t.Logf("%s FAIL %v",n,err);fail++;continue}
  pass++
 }
 t.Logf("pass %d fail %d nojson %d",pass,fail,none)
}
