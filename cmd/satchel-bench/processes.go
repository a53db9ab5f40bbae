//go:build linux

package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// processTree lists the children of every process.
func processTree() (map[int][]int, error) {
	tree := map[int][]int{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	for _, s := range stats {
		b, err := os.ReadFile(s)
		if err != nil {
			continue // it ended meanwhile
		}
		// The name in parentheses may hold anything; the parent is the second
		// field after it.
		text := string(b)
		fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
		id, _ := strconv.Atoi(filepath.Base(filepath.Dir(s)))
		parent, _ := strconv.Atoi(fields[1])
		tree[parent] = append(tree[parent], id)
	}
	return tree, nil
}

// childrenOf returns the processes that pid started.
func childrenOf(pid int) ([]int, error) {
	tree, err := processTree()
	return tree[pid], err
}

// descendants returns the processes under pid, pid not among them.
func descendants(pid int) ([]int, error) {
	tree, err := processTree()
	var all []int
	for queue := tree[pid]; len(queue) > 0; queue = queue[1:] {
		all = append(all, queue[0])
		queue = append(queue, tree[queue[0]]...)
	}
	return all, err
}

// pss returns a process's proportional set size in MB.
func pss(pid int) (float64, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "Pss:"); ok {
			var kb float64
			_, err := fmt.Sscan(rest, &kb)
			return kb * 1024 / 1e6, err
		}
	}
	return 0, fmt.Errorf("process %d tells no Pss", pid)
}
