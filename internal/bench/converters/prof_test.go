package converters
import "testing"
func BenchmarkOurs(b *testing.B) {
	all, err := subjects(); if err != nil { b.Fatal(err) }
	reviews, err := bodies(); if err != nil { b.Fatal(err) }
	for _, r := range reviews {
		for _, s := range []subject{all[0], all[4]} {
		b.Run(r.name+"/"+s.name, func(b *testing.B) {
			c := newClient(s.handler, r.text)
			b.ReportAllocs()
			for b.Loop() { c.call() }
		})
		}
	}
}
