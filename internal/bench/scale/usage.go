// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/internal/bench/measure"
)

// The subjects of CPU times.
const (
	apiServer = "kube-apiserver"
	etcd      = "etcd"
	pods      = "converter pods"
	everyone  = "all together"
)

// follows is how long work is measured that processes do after a change: an API server publishes its
// OpenAPI documents later.
const follows = 3 * time.Second

// usage is what a cluster has used since its start.
type usage struct {
	// cpu is the CPU time of processes, by subject.
	cpu map[string]time.Duration
	// requests are those that the API server has answered, by verb and resource.
	requests map[string]float64
}

// used reads the usage now. The manager is nil if it does not run.
func (s *suite) used(ctx context.Context, p *process) (usage, error) {
	children, err := childrenByName()
	if err != nil {
		return usage{}, err
	}
	pids := map[string][]int{apiServer: children[apiServer], etcd: children[etcd]}
	if p != nil {
		pids[manager] = []int{p.command.Process.Pid}
	}
	for _, pod := range s.nodes.running() {
		pids[pods] = append(pids[pods], pod.PID())
	}
	found := usage{cpu: map[string]time.Duration{}}
	for subject, of := range pids {
		for _, pid := range of {
			cpu, err := measure.CPUTimeOf(pid)
			if err != nil {
				return usage{}, err
			}
			found.cpu[subject] += cpu
			found.cpu[everyone] += cpu
		}
	}
	found.requests, err = s.cluster.requests(ctx)
	return found, err
}

// childrenByName returns the processes that this one has started, by the names of their programs.
func childrenByName() (map[string][]int, error) {
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		return nil, err
	}
	children := map[string][]int{}
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for field := range strings.FieldsSeq(string(text)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				return nil, err
			}
			name, err := os.ReadFile("/proc/" + field + "/comm")
			if err != nil {
				continue // it has ended
			}
			children[strings.TrimSpace(string(name))] = append(children[strings.TrimSpace(string(name))], pid)
		}
	}
	return children, nil
}

// requests reads how many requests the API server has answered, by verb and resource. Watches count when
// they end.
func (c *cluster) requests(ctx context.Context) (map[string]float64, error) {
	reader, err := c.paths()
	if err != nil {
		return nil, err
	}
	stream, err := reader.Get().AbsPath("/metrics").Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	requests := map[string]float64{}
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		name, series, _ := strings.Cut(lines.Text(), "{")
		labels, value, is := strings.Cut(series, "} ")
		if name != "apiserver_request_total" || !is {
			continue
		}
		count, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, err
		}
		if request := requestOf(labels); request != "" {
			requests[request] += count
		}
	}
	return requests, lines.Err()
}

// paths returns a client for requests by path.
func (c *cluster) paths() (*rest.RESTClient, error) {
	config := rest.CopyConfig(c.server.Kubeconfig)
	config.NegotiatedSerializer = clientgoscheme.Codecs
	return rest.UnversionedRESTClientFor(config)
}

// longestLine bounds a line of metrics.
const longestLine = 1 << 20

var label = regexp.MustCompile(`(\w+)="([^"]*)"`)

// requestOf names a kind of requests by the labels of its metric. Watches have no name: they count when
// they end.
func requestOf(labels string) string {
	of := map[string]string{}
	for _, found := range label.FindAllStringSubmatch(labels, -1) {
		of[found[1]] = found[2]
	}
	if of["resource"] == "" || of["verb"] == "WATCH" {
		return ""
	}
	resource := of["resource"]
	if strings.HasPrefix(of["group"], groupPrefix) {
		resource = "custom resources"
	}
	request := of["verb"] + " " + resource
	if of["subresource"] != "" {
		request += "/" + of["subresource"]
	}
	if of["dry_run"] != "" {
		request += " in a dry run"
	}
	return request
}

// use adds what work for policies has used, and returns the CPU time of all processes. It waits until
// the processes have done what follows.
func (s *suite) use(ctx context.Context, p *process, name, does string, policies int, work func() error) (time.Duration, error) {
	before, err := s.used(ctx, p)
	if err != nil {
		return 0, err
	}
	if err := work(); err != nil {
		return 0, err
	}
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(follows):
	}
	after, err := s.used(ctx, p)
	if err != nil {
		return 0, err
	}
	for _, subject := range []string{manager, apiServer, etcd, pods, everyone} {
		if spent := after.cpu[subject] - before.cpu[subject]; spent > 0 {
			s.add(name, does+": "+subject, spent.Seconds(), "s CPU")
			s.add(name, does+": "+subject, measure.In(time.Millisecond, spent)/float64(policies), "ms CPU per policy")
		}
	}
	for _, request := range slices.Sorted(maps.Keys(after.requests)) {
		if count := (after.requests[request] - before.requests[request]) / float64(policies); count >= leastRequests {
			s.add(name, fmt.Sprintf("%s: %s", does, request), count, "requests per policy")
		}
	}
	return after.cpu[everyone] - before.cpu[everyone], nil
}

// leastRequests leaves out requests that are rare.
const leastRequests = 0.05
