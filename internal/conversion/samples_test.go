// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// TestSamples converts objects of both samples there and back, byte for byte.
func TestSamples(t *testing.T) {
	for name, test := range map[string]struct {
		sample, object, to, want string
	}{
		"five fields": {
			"crontab-cronspec", `{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"a"},"spec":{"cronSpec":"*/5 9 * * 1","image":"i","replicas":1}}`,
			"v2", `{"apiVersion":"stable.example.com/v2","kind":"CronTab","metadata":{"name":"a"},"spec":{"image":"i","replicas":1,"min":"*/5","hour":"9","dayOfMonth":"*","month":"*","dayOfWeek":"1"}}`,
		},
		"an owner is kept": {
			"crontab-cronspec", `{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"a"},"spec":{"cronSpec":"* * * * *","owner":"data team"}}`,
			"v2", `{"apiVersion":"stable.example.com/v2","kind":"CronTab","metadata":{"name":"a","annotations":{"conversion-operator.io/v1.crontabs.stable.example.com":"{\"format\":2,\"fields\":{\"/spec/owner\":\"data team\"}}"}},"spec":{"min":"*","hour":"*","dayOfMonth":"*","month":"*","dayOfWeek":"*"}}`,
		},
		"a time zone is kept": {
			"crontab-cronspec", `{"apiVersion":"stable.example.com/v2","kind":"CronTab","metadata":{"name":"a"},"spec":{"timeZone":"UTC"}}`,
			"v1", `{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"a","annotations":{"conversion-operator.io/v2.crontabs.stable.example.com":"{\"format\":2,\"fields\":{\"/spec/timeZone\":\"UTC\"}}"}},"spec":{}}`,
		},
		"no five words": {
			"crontab-cronspec", `{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"a"},"spec":{"cronSpec":"@hourly"}}`,
			"v2", `{"apiVersion":"stable.example.com/v2","kind":"CronTab","metadata":{"name":"a","annotations":{"conversion-operator.io/v1.crontabs.stable.example.com":"{\"format\":2,\"fields\":{\"/spec/cronSpec\":\"@hourly\"}}"}},"spec":{}}`,
		},
		"some holes are absent": {
			"crontab-cronspec", `{"apiVersion":"stable.example.com/v2","kind":"CronTab","metadata":{},"spec":{"hour":"9"}}`,
			"v1", `{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{},"spec":{"cronSpec":" 9   "}}`,
		},
		"a hole with a space": {
			"crontab-cronspec", `{"apiVersion":"stable.example.com/v2","kind":"CronTab","metadata":{},"spec":{"hour":"9 10","min":"0"}}`,
			"v1", `{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"annotations":{"conversion-operator.io/v2.crontabs.stable.example.com":"{\"format\":2,\"fields\":{\"/spec/hour\":\"9 10\",\"/spec/min\":\"0\"},\"images\":{\"/spec/hour\":[\"/spec/cronSpec\"],\"/spec/min\":[\"/spec/cronSpec\"]}}"}},"spec":{"cronSpec":"0 9 10   "}}`,
		},
		"fields at the root": {
			"crontab-hostport", `{"apiVersion":"example.com/v1beta1","kind":"CronTab","metadata":{},"hostPort":"localhost:1234","replicas":2}`,
			"v1", `{"apiVersion":"example.com/v1","kind":"CronTab","metadata":{},"replicas":2,"host":"localhost","port":"1234"}`,
		},
		"a port alone": {
			"crontab-hostport", `{"apiVersion":"example.com/v1beta1","kind":"CronTab","metadata":{},"hostPort":":80"}`,
			"v1", `{"apiVersion":"example.com/v1","kind":"CronTab","metadata":{},"port":"80"}`,
		},
		"a colon alone": {
			"crontab-hostport", `{"apiVersion":"example.com/v1beta1","kind":"CronTab","metadata":{},"hostPort":":"}`,
			"v1", `{"apiVersion":"example.com/v1","kind":"CronTab","metadata":{"annotations":{"conversion-operator.io/v1beta1.crontabs.example.com":"{\"format\":2,\"fields\":{\"/hostPort\":\":\"}}"}}}`,
		},
		"two colons": {
			"crontab-hostport", `{"apiVersion":"example.com/v1beta1","kind":"CronTab","metadata":{},"hostPort":"::"}`,
			"v1", `{"apiVersion":"example.com/v1","kind":"CronTab","metadata":{},"port":":"}`,
		},
		"a host with a colon": {
			"crontab-hostport", `{"apiVersion":"example.com/v1","kind":"CronTab","metadata":{},"host":"::1","port":"80"}`,
			"v1beta1", `{"apiVersion":"example.com/v1beta1","kind":"CronTab","metadata":{"annotations":{"conversion-operator.io/v1.crontabs.example.com":"{\"format\":2,\"fields\":{\"/host\":\"::1\",\"/port\":\"80\"},\"images\":{\"/host\":[\"/hostPort\"],\"/port\":[\"/hostPort\"]}}"}},"hostPort":"::1:80"}`,
		},
		"an empty host": {
			"crontab-hostport", `{"apiVersion":"example.com/v1","kind":"CronTab","metadata":{},"host":"","port":"80"}`,
			"v1beta1", `{"apiVersion":"example.com/v1beta1","kind":"CronTab","metadata":{"annotations":{"conversion-operator.io/v1.crontabs.example.com":"{\"format\":2,\"fields\":{\"/host\":\"\",\"/port\":\"80\"},\"images\":{\"/host\":[\"/hostPort\"],\"/port\":[\"/hostPort\"]}}"}},"hostPort":":80"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := sample(t, test.sample)
			if diff := cmp.Diff(test.want, convert(t, c, test.object, test.to)); diff != "" {
				t.Fatalf("there (-want +got):\n%s", diff)
			}
			_, outcome, err := c.Answer(nil, []byte(test.object), test.to, nil)
			if err != nil {
				t.Fatal(err)
			}
			back := convert(t, c, test.want, outcome.From)
			if !sameJSON(t, test.object, back) {
				t.Errorf("back: %s, want %s", back, test.object)
			}
		})
	}
}

// sameJSON compares but for the order of names.
func sameJSON(t testing.TB, a, b string) bool {
	t.Helper()
	left, err := conversion.Canonical([]byte(a))
	if err != nil {
		t.Fatal(err)
	}
	right, err := conversion.Canonical([]byte(b))
	if err != nil {
		t.Fatal(err)
	}
	return left == right
}
